// An answer as the server rendered and cleaned it; its marks and labels in the language of the page.
import { copyText } from "./copying.js";
import { translate } from "./messages.js";
import { make, parsed } from "./text.js";

const LABEL = /^Source (\d+): (.*)$/s;

export function answerNodes(html) {
  const nodes = parsed(html);
  for (const node of nodes) if (node instanceof Element) localize(node);
  return nodes;
}

/** What a chip is called; of a page of the web with its host. */
export function chipLabel(number, title, host) {
  if (host) return translate("Source {number}, on the web at {host}: {title}", { number, host, title });
  return translate("Source {number}: {title}", { number, title });
}

function localize(root) {
  localizeMarks(root);
  localizeChips(root);
  offerCopies(root);
}

function localizeMarks(root) {
  for (const mark of root.querySelectorAll("sup.uncited")) {
    mark.title = translate("This sentence cites no document");
    mark.textContent = translate("no source");
  }
}

/** Name the citations of a page, or of a part of it, in its language. */
export function localizeChips(root) {
  for (const chip of root.querySelectorAll("a.cite")) {
    const [, number, title] = LABEL.exec(chip.getAttribute("aria-label") ?? "") ?? [];
    if (number) chip.setAttribute("aria-label", chipLabel(number, title, chip.dataset.host));
  }
}

/** Give each block of code of a page, or of a part of it, a button that copies it. */
export function offerCopies(root) {
  const blocks = root.matches("pre") ? [root] : root.querySelectorAll("pre");
  for (const block of blocks) block.prepend(copyButton(block));
}

function copyButton(block) {
  const button = make("button", { type: "button", class: "copy-code" }, translate("Copy code"));
  button.addEventListener("click", () => copyText(block.querySelector("code").textContent, button, translate("Copied.")));
  return button;
}
