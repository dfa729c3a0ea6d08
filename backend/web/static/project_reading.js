// A conversation of somebody else in a project: the cards of its citations, and a document beside it.
import { watchCards } from "./cards.js";
import { watchPane } from "./pane.js";

const element = (id) => document.getElementById(id);

/** What the card of a citation says. */
function facts(chip) {
  const { citations } = chip.closest("[data-citations]")?.dataset ?? {};
  return (citations && JSON.parse(citations)[chip.dataset.at]) ?? null;
}

watchPane(element("project-reading"), watchCards(element("room"), element("card"), facts));
