// The card of a citation, for pointer, focus and tap alike: what is quoted, from where, how well.
import { sourceName } from "./cited.js";
import { listed, translate } from "./messages.js";
import { kindName } from "./source_kinds.js";
import { day, isolated, make, quotation } from "./text.js";

const VERDICTS = {
  verbatim: translate("Verbatim from this source."),
  supported: translate("Supported by this source."),
  weak: translate("Partly supported by this source. Read it before you rely on it."),
  unsupported: translate("Not supported by this source."),
  contradicted: translate("This source contradicts the statement. Compare the two before you rely on either."),
  unchecked: translate("Not checked: the sentence states nothing to compare, its language is not understood, or the check did not run."),
};
const GAP = 8;
const LINGER = 150;

/** Show a card for each `.cite` within `root`; `describe(chip)` returns its content, or null. */
export function watchCards(root, card, describe) {
  let leaving = 0;
  let of = null;
  let isHeld = false;
  let isTouch = false;

  function open(chip, hold = false) {
    clearTimeout(leaving);
    const facts = describe(chip);
    if (!facts || of === chip) return;
    close();
    of = chip;
    isHeld = hold;
    card.replaceChildren(...content(facts), ...(hold ? [opener(chip)] : []));
    card.setAttribute("role", hold ? "dialog" : "tooltip");
    card.hidden = false;
    chip.setAttribute("aria-describedby", card.id);
    place(card, chip);
  }

  function close() {
    clearTimeout(leaving);
    of?.removeAttribute("aria-describedby");
    of = null;
    isHeld = false;
    card.hidden = true;
  }

  function leave() {
    clearTimeout(leaving);
    if (!isHeld) leaving = setTimeout(close, LINGER);
  }

  /** A tap opens the card, which stays until one taps elsewhere; its button leads to the document. */
  function tap(event) {
    const chip = event.target.closest(".cite");
    if (!chip || !isTouch || !describe(chip)) return;
    event.preventDefault();
    if (of === chip && isHeld) {
      close();
      return;
    }
    close();
    open(chip, true);
    card.querySelector("a").focus({ preventScroll: true });
  }

  root.addEventListener("click", tap);
  document.addEventListener("pointerdown", (event) => {
    isTouch = event.pointerType === "touch";
    if (isHeld && !card.contains(event.target) && !event.target.closest(".cite")) close();
  });
  // An answer that is taken away takes the card of its citation with it.
  new MutationObserver(() => of && !of.isConnected && close()).observe(root, { childList: true, subtree: true });

  root.addEventListener("pointerover", (event) => {
    const chip = event.target.closest(".cite");
    if (chip && event.pointerType !== "touch") open(chip);
  });
  root.addEventListener("pointerout", (event) => event.target.closest(".cite") && leave());
  addEventListener("scroll", close, { passive: true });
  card.addEventListener("pointerenter", () => clearTimeout(leaving));
  card.addEventListener("pointerleave", leave);
  root.addEventListener("focusin", (event) => {
    const chip = event.target.closest(".cite");
    if (chip?.matches(":focus-visible")) open(chip);
  });
  root.addEventListener("focusout", leave);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && of) {
      event.preventDefault();
      close();
    }
  });
  return close;
}

function content({ title, source, date, quote, verdict, kind, link }) {
  const where = listed([kindName({ kind, link }), sourceName(source), day(date)]);
  return [
    make("p", { class: "name" }, isolated(title)),
    where && make("p", { class: "dim" }, make("bdi", {}, where)),
    quote && make("p", { class: "quote", dir: "auto" }, quotation(quote)),
    verdict && make("p", { class: `verdict ${verdict}` }, VERDICTS[verdict] ?? ""),
  ].filter(Boolean);
}

function opener(chip) {
  const { target, rel, dataset } = chip;
  const said = dataset.host ? translate("Open the page") : translate("Open the document");
  return make("a", { class: "button", href: chip.getAttribute("href"), target: target || false, rel: rel || false }, said);
}

/** Below the chip, or above it where there is no room; the card is fixed to the window. */
function place(card, chip) {
  const at = chip.getBoundingClientRect();
  const size = card.getBoundingClientRect();
  const page = document.documentElement;
  const left = Math.min(Math.max(GAP, at.left - 24), page.clientWidth - size.width - GAP);
  const below = at.bottom + GAP + size.height <= page.clientHeight;
  const top = below ? at.bottom + GAP : at.top - size.height - GAP;
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}
