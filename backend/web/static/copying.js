// An answer with its sources, as plain text.
import { translate } from "./messages.js";

const LINK = /\[\[(\d+)\]\]\([^)\s]*\)/g;
const ESCAPED = /\\([!-/:-@[-`{-~])/g;

/** Copy, and say how that went. */
export async function copied(turn, button) {
  const before = button.textContent;
  let said = translate("Copied with sources");
  try {
    await navigator.clipboard.writeText(asText(turn));
  } catch {
    said = translate("The browser did not allow copying");
  }
  button.textContent = said;
  setTimeout(() => (button.textContent = before), 2000);
  return said;
}

export function asText({ text, answer, question }) {
  const linked = (answer?.answer ?? text).replace(LINK, "[$1]");
  // Without a model the answer is text of documents, whose marks are escaped.
  const body = answer?.model === null ? linked.replace(ESCAPED, "$1") : linked;
  const sources = new Map();
  for (const citation of answer?.citations ?? []) {
    const quotes = sources.get(citation.number)?.quotes ?? new Set();
    if (citation.quote) quotes.add(citation.quote.replace(/\s+/g, " ").trim());
    sources.set(citation.number, { ...citation, quotes });
  }
  const byNumber = [...sources.values()].sort((one, other) => one.number - other.number);
  const listed = byNumber.map(({ number, title, link, quotes }) =>
    [`[${number}] ${title}`, ...[...quotes].map((quote) => `    “${quote}”`), link && `    ${link}`]
      .filter(Boolean)
      .join("\n"),
  );
  const heading = listed.length > 0 && translate("References");
  const origin = answer?.general_knowledge && translate("From general knowledge, not from a source. Check it before you rely on it.");
  return [question, body, origin, heading, listed.join("\n")].filter(Boolean).join("\n\n") + "\n";
}
