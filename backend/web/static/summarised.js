// What the language model is given from now on in place of the messages above.
import { replaceControls } from "./text.js";

/** Show the summary that ends with the message of this node, if there is one. */
export function showSummary(node, { summary }) {
  const part = node.querySelector('[data-part="summarised"]');
  if (!part) return;
  part.hidden = !summary;
  part.lastElementChild.textContent = replaceControls(summary ?? "");
}
