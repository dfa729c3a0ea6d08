// What an answer stands on, beside it.
import { listed, translate } from "./messages.js";
import { kindName, sourceLink } from "./source_kinds.js";
import { day, gist, replaceControls, isolated, make } from "./text.js";

/** A source with its first quote, where it opens. */
export function quoted(known, citation) {
  if (known.quote) return {};
  const { number, quote, section, span } = citation;
  return quote ? { number, quote, section, span } : { number };
}

/** People name their sources themselves, but for those of their files. */
export function sourceName(name) {
  if (name === "Your files") return translate("Your files");
  if (name === "Files of this project") return translate("Files of this project");
  if (name === "Files of this assistant") return translate("Files of this assistant");
  return replaceControls(name);
}

/** A source in the list beside the answer. */
export function entry(source) {
  const link = sourceLink(source, {}, isolated(source.title));
  const where = listed([kindName(source), sourceName(source.source), day(source.updated_at)]);
  return make(
    "li",
    { class: source.number ? "cited" : false },
    make("span", { class: "number", "aria-hidden": source.number ? false : "true" }, source.number ? String(source.number) : "·"),
    make(
      "div",
      {},
      link,
      where && make("p", {}, make("bdi", {}, where)),
      make("p", { class: "gist", dir: "auto" }, gist(source.quote || source.content)),
    ),
  );
}

/** The list behind an answer: the cited sources, by number, each with what is known of it and its first quote. */
export function showReferences(root, references, known) {
  root.hidden = !references.length;
  root.querySelector("ol").replaceChildren(...references.map((one) => entry({ ...known.get(one.document_id), ...one })));
}
