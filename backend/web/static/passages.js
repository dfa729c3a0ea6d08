// Passages of documents, where no language model answers: what seems to answer is marked in them.
import { pluralize, translate } from "./messages.js";
import { translateSentence } from "./sentences.js";
import { documentUrl, isolated, make, replaceControls } from "./text.js";

/** The sentence that says why they are shown, and the passages; folded where none seems to answer. */
export function passageNodes({ reason, sentence, passages }) {
  const said = make("p", { class: "reason" }, translateSentence(sentence));
  if (!passages.length) return [said];
  const listed = make("ol", { class: "passages", "aria-label": translate("Passages") }, ...passages.map(passageNode));
  if (reason !== "nothing_answers") return [said, listed];
  const closest = pluralize(passages.length, "Show the closest passage", "Show the closest {number} passages");
  const summary = make("summary", {}, closest);
  return [said, make("details", { class: "closest" }, summary, listed)];
}

function passageNode({ document_id, title, place, section, span, runs }) {
  const link = make("a", { href: documentUrl(document_id, section, span) }, isolated(title));
  const quote = runs.map(({ text, highlighted }) => {
    const shown = replaceControls(text);
    return highlighted ? make("mark", {}, shown) : shown;
  });
  return make(
    "li",
    {},
    make("p", { class: "from" }, link, place && make("span", { class: "dim" }, isolated(place))),
    make("blockquote", { dir: "auto" }, ...quote),
  );
}
