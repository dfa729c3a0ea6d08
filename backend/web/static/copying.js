// Copying: an answer with its sources as plain text, and what else has a button for it.
import { translate } from "./messages.js";
import { addressOf } from "./source_kinds.js";
import { quotation } from "./text.js";

const LINK = /\[\[(\d+)\]\]\([^)\s]*\)/g;
const ESCAPED = /\\([!-/:-@[-`{-~])/g;

/** Copy an answer with its sources, and say how that went. */
export const copied = (turn, button) => copyText(asText(turn), button, translate("Copied with sources"));

/** Copy a text; for a moment the button says how that went. */
export async function copyText(text, button, done) {
  button.dataset.label ??= button.textContent;
  let result = done;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    result = translate("The browser did not allow copying");
  }
  button.textContent = result;
  setTimeout(() => (button.textContent = button.dataset.label), 2000);
  return result;
}

export function asText({ text, answer, citations, question }) {
  const linked = (answer?.answer ?? text).replace(LINK, "[$1]");
  // Without a model the answer is text of documents, whose marks are escaped.
  const body = answer?.model === null ? linked.replace(ESCAPED, "$1") : linked;
  const sources = new Map();
  for (const citation of citations) {
    const quotes = sources.get(citation.number)?.quotes ?? new Set();
    if (citation.quote) quotes.add(quotation(citation.quote).replace(/\s+/g, " ").trim());
    sources.set(citation.number, { ...citation, quotes });
  }
  const byNumber = [...sources.values()].sort((one, other) => one.number - other.number);
  const listed = byNumber.map(({ quotes, ...source }) => {
    const address = addressOf(source);
    return [`[${source.number}] ${source.title}`, ...[...quotes].map((quote) => `    “${quote}”`), address && `    ${address}`]
      .filter(Boolean)
      .join("\n");
  });
  const heading = listed.length > 0 && translate("References");
  const origin = answer?.general_knowledge && translate("From general knowledge, not from a source. Check it before you rely on it.");
  return [question, body, origin, heading, listed.join("\n")].filter(Boolean).join("\n\n") + "\n";
}
