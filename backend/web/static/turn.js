// One turn: its steps, its sources, its answer; a page may show many.
import { answerNodes, chipLabel } from "./answer_nodes.js";
import { showScope } from "./attachments.js";
import { entry, quoted, showReferences } from "./cited.js";
import { Live } from "./live.js";
import { pluralize, translate } from "./messages.js";
import { passageNodes } from "./passages.js";
import { asSentence, joinSentences, translateSentence } from "./sentences.js";
import { Problem } from "./stream.js";
import { hostOf, sourceLink } from "./source_kinds.js";
import { replaceControls, make } from "./text.js";
import { plannedSteps, readSteps, searchedSteps } from "./web_steps.js";

const HELP = {
  semantic_query_rephrase: translate("the model's rephrasing"),
  keyword_query_expansion: translate("the model's key words"),
  embedding: translate("the search by meaning"),
  late_retrieval: translate("the search for the model's variants"),
  selection: translate("the model's choice of passages"),
  expansion: translate("the text around what was found"),
  intent: translate("the plan of the search"),
  earlier_findings: translate("earlier findings"),
  knowledge: translate("company knowledge"),
  web: translate("the web"),
  memory: translate("what you asked Quarry to remember"),
  language_model: translate("the chosen language model"),
  assistant_model: translate("the language model of this assistant"),
  follow_up: translate("what was said before"),
  history: translate("the earliest messages of this conversation"),
};

/** What the asker should know, beside the steps: an answer may be of something else, or by somebody else, than was meant. */
const SAID_BESIDE = new Set(["follow_up", "history", "assistant_model"]);

const HEARD = {
  files: (turn, data) => turn.files(data),
  queries: (turn, data) => turn.queries(data),
  narrowed: (turn, data) => turn.narrowed(data),
  planned: (turn, data) => turn.planned(data),
  web_searched: (turn, data) => turn.webSearched(data),
  pages_read: (turn, data) => turn.pagesRead(data),
  earlier_findings: (turn, data) => turn.earlierFindings(data),
  first_results: (turn, data) => turn.results(data),
  results: (turn, data) => turn.results(data),
  selected: (turn, data) => turn.selected(data),
  lost: (turn, data) => turn.lost(data),
  reasoning: (turn, data) => turn.reasoning(data),
  citation: (turn, data) => turn.citation(data),
  passages: (turn, data) => turn.passages(data),
  text: (turn, data) => turn.write(data),
  done: (turn, data) => turn.done(data),
};

/** What is said where an answer, or sentences of it, cite nothing. */
function uncitedNotice({ uncited, citations, general_knowledge }) {
  if (!uncited?.length || general_knowledge) return "";
  if (!citations.length) return translate("This answer cites no document. Check it before you rely on it.");
  return pluralize(uncited.length, "One sentence cites no document; it is marked.", "{number} sentences cite no document; they are marked.");
}

/** How a part of the question was read. */
const readingOf = ({ words, kind, meaning }) => ({
  words: replaceControls(words),
  kind: translateSentence(kind),
  meaning: replaceControls(translateSentence(meaning)),
});

function spentOn({ model, seconds }) {
  const spent = seconds.toFixed(1);
  return model ? translate("{seconds} s by {model}", { seconds: spent, model: replaceControls(model) }) : translate("{seconds} s", { seconds: spent });
}

/** The reader may not read any more what the answer draws on, or has no account any more. */
const isWithdrawn = ({ status }) => status === 401 || status === 403;

/** What is said of a turn that failed, and as its last step. */
const ENDINGS = {
  none: [translate("There is no answer"), translate("Gave up")],
  removed: [translate("This answer was removed"), translate("Removed")],
  incomplete: [translate("This answer is not complete"), translate("Interrupted")],
};

/** Let a turn take in an event, and say that its answer is written once it is. */
export function hear(turn, name, data, say) {
  turn.hear(name, data);
  if (turn.isWritten && document.getElementById("status").textContent === translate("Searching")) say(translate("Writing"));
}

export class Turn {
  #steps = new Map();
  #sources = new Map();
  #cited = new Map();
  #web = new Map();
  #searches = 0;
  #root;
  #live;
  #shown = null;
  answer = null;

  /** `root` holds an element for each part of the turn, by its `data-part`. */
  constructor(root, question) {
    this.#root = root;
    this.question = question;
    this.#live = new Live(this.part("answer"), (number) => this.#chip(number));
    for (const name of ["steps", "sources", "answer", "passages"]) this.part(name).replaceChildren();
    for (const name of ["answer", "beside", "work"]) this.part(name).hidden = false;
    for (const name of ["thinking", "aside", "cut", "uncited", "general", "references", "trouble", "after", "read-too"]) this.part(name).hidden = true;
    this.part("thinking").lastElementChild.textContent = "";
    this.part("work").open = true;
    this.part("answer").setAttribute("aria-busy", "true");
    this.files(null);
    this.step("search", translate("Searching"));
  }

  part(name) {
    return this.#root.querySelector(`[data-part="${name}"]`);
  }

  /** Take in an event of the server. Throws Problem, where it is an error. */
  hear(name, data) {
    if (name === "error") throw new Problem(data);
    HEARD[name]?.(this, data);
  }

  get text() {
    return this.#live.text;
  }

  /** Whether a model writes its answer by now; passages that are shown instead of one, nobody writes. */
  get isWritten() {
    return Boolean(this.text) && !this.part("answer").hidden;
  }

  /** Say what is being done; a step that is known already says something new. */
  step(key, text, kind = "now") {
    const item = this.#steps.get(key) ?? make("li");
    item.textContent = text;
    this.part("steps").append(...(item.isConnected ? [] : [item]));
    this.#steps.set(key, item);
    for (const other of this.part("steps").children) other.classList.remove("now");
    item.className = kind;
  }

  /** What becomes of the files of the question; pages without files have no place for it. */
  files(given) {
    if (this.part("scope")) showScope(this.part("scope"), given);
  }

  queries({ variants }) {
    const texts = [...new Set(variants.map((variant) => replaceControls(variant.text)))];
    this.step("search", translate("Searched: {queries}", { queries: texts.join(" · ") }));
  }

  narrowed(filters) {
    const { inferred = [], ...chosen } = filters;
    const said = Object.values(chosen).flat().filter((value) => value != null);
    if (said.length) this.step("narrowed", translate("Narrowed to {filters}", { filters: said.map((value) => replaceControls(String(value))).join(" · ") }));
    const read = inferred.map((one) => translate("“{words}” as {kind}: {meaning}", readingOf(one)));
    if (read.length) this.step("inferred", translate("Placed first, reading {readings}", { readings: read.join(" · ") }));
  }

  planned(plan) {
    this.#stepAll(plannedSteps(plan));
  }

  /** What a search of the web sent and found; its results stand among the sources until the answer says which it was given. */
  webSearched(searched) {
    this.#searches += 1;
    this.#stepAll(searchedSteps(searched, this.#searches));
    for (const { title, url, summary } of searched.results) this.#web.set(url, { document_id: url, title: title || url, link: url, content: summary, kind: "url" });
    this.#draw();
  }

  pagesRead(read) {
    this.#stepAll(readSteps(read));
  }

  earlierFindings({ questions }) {
    this.step("earlier-findings", pluralize(questions.length, "{number} earlier finding used", "{number} earlier findings used"));
  }

  #stepAll(steps) {
    for (const step of steps) this.step(...step);
  }

  results({ results }) {
    this.step("found", pluralize(results.length, "Found {number} passage", "Found {number} passages"));
    this.#list(results);
  }

  selected({ results }) {
    const titles = [...new Set(results.map((result) => replaceControls(result.title)))];
    this.step("read", translate("Reading {titles}", { titles: `${titles.slice(0, 4).join(" · ")}${titles.length > 4 ? " …" : ""}` }));
    this.#list(results);
  }

  lost({ step, reason }) {
    const said = translate("Done without {help}: {reason}", { help: HELP[step] ?? replaceControls(step), reason: replaceControls(translateSentence(reason)) });
    this.step(`lost ${step}`, said, "lost");
    if (!SAID_BESIDE.has(step)) return;
    const aside = this.part("aside");
    aside.textContent = aside.hidden ? said : joinSentences(aside.textContent, said);
    aside.hidden = false;
  }

  reasoning({ text }) {
    this.part("thinking").hidden = false;
    this.part("thinking").lastElementChild.append(replaceControls(text));
  }

  citation(citation) {
    this.#cited.set(citation.number, citation);
    const known = this.#sources.get(citation.document_id) ?? { ...this.#web.get(citation.link), ...citation };
    this.#sources.set(citation.document_id, { ...known, number: citation.number });
    this.#web.delete(citation.link);
    this.#draw();
  }

  /** Passages where no language model answers: they take the place of its answer and of the sources, but for pages of the web. */
  passages(shown) {
    this.#shown = shown;
    this.part("passages").replaceChildren(...passageNodes(shown));
    this.#draw();
    this.part("answer").hidden = shown.reason !== "model_broke_off";
  }

  write({ text }) {
    if (!this.#live.text && !this.#shown) this.step("write", translate("Writing the answer"));
    this.#live.add(text);
  }

  /** The whole answer, as the server rendered and cleaned it. */
  done({ answer, html }) {
    this.answer = { ...answer, html };
    this.files(answer.files);
    this.part("answer").replaceChildren(...answerNodes(html));
    this.part("cut").hidden = !answer.cut;
    // What was found and not used, as for a greeting, is no source.
    if (answer.documents?.length === 0) this.part("beside").hidden = true;
    this.part("uncited").textContent = uncitedNotice(answer);
    this.part("uncited").hidden = !this.part("uncited").textContent;
    this.part("general").hidden = !answer.general_knowledge;
    this.#takeWeb(answer.documents ?? []);
    this.#takeOrigins(answer.documents ?? []);
    for (const citation of answer.citations) {
      const known = this.#sources.get(citation.document_id) ?? { ...citation };
      this.#sources.set(citation.document_id, { ...known, ...quoted(known, citation) });
    }
    showReferences(this.part("references"), answer.references ?? [], this.#sources);
    this.part("spent").textContent = spentOn(answer);
    this.#draw();
  }

  /** Name source and day as the answer does: so will the page where it is opened again. Not all that is cited stands in the last list of results. */
  #takeOrigins(documents) {
    for (const { cited, source, updated_at, number, sections, ...document } of documents) {
      const known = this.#sources.get(document.document_id) ?? (cited ? document : null);
      if (known && document.kind !== "url") this.#sources.set(document.document_id, { ...known, source, updated_at });
    }
  }

  /** Of what was found on the web, keep what the answer was given, under the ids by which it is cited. */
  #takeWeb(documents) {
    for (const { number, cited, sections, ...document } of documents.filter((one) => one.kind === "url")) {
      const known = this.#sources.get(document.document_id) ?? { ...this.#web.get(document.link), ...document };
      this.#sources.set(document.document_id, { ...known, number: cited ? number : undefined });
    }
    this.#web.clear();
  }

  /** Leave nothing of what was read: not in the answer, its sources or the steps. */
  #clear() {
    this.#live.draw();
    this.#live = new Live(this.part("answer"), (number) => this.#chip(number));
    for (const name of ["steps", "sources", "answer", "passages"]) this.part(name).replaceChildren();
    for (const name of ["thinking", "beside", "general", "references"]) this.part(name).hidden = true;
    document.getElementById("card").hidden = true;
    this.part("thinking").lastElementChild.textContent = "";
    this.part("read-too").lastElementChild.replaceChildren();
    for (const known of [this.#steps, this.#sources, this.#cited, this.#web]) known.clear();
    this.#shown = null;
  }

  /** End of the turn, however it ended. */
  end(kind, text) {
    this.#live.draw();
    if (this.answer) this.part("answer").replaceChildren(...answerNodes(this.answer.html));
    this.part("answer").removeAttribute("aria-busy");
    if (kind === "done") {
      this.#steps.get("write")?.remove();
      for (const item of this.#steps.values()) item.classList.remove("now");
      this.part("work").open = false;
      this.part("work").hidden = !this.part("steps").children.length;
    } else this.step("end", text, "lost");
    this.part("after").hidden = false;
    this.part("copy").hidden = !this.text && !this.answer;
  }

  /** What came so far stays; beside it stands what happened, and what to do. */
  fail(problem) {
    const { title, detail, advice } = problem;
    const [said, step] = ENDINGS[this.#endingOf(problem)];
    if (isWithdrawn(problem)) this.#clear();
    this.end("failed", step);
    const texts = [translateSentence(detail) || asSentence(translateSentence(title)), translateSentence(advice)].filter(Boolean);
    const paragraphs = texts.map((text) => make("p", {}, replaceControls(text)));
    this.part("trouble").replaceChildren(make("h2", {}, said), ...paragraphs);
    this.part("trouble").hidden = false;
  }

  #endingOf(problem) {
    if (!this.text) return "none";
    return isWithdrawn(problem) ? "removed" : "incomplete";
  }

  /** How the turn ended, in a sentence. */
  get outcome() {
    if (this.#shown) return translateSentence(this.#shown.sentence);
    const number = this.answer.citations.length;
    if (this.answer.cut) return pluralize(number, "The answer was cut off. {number} citation.", "The answer was cut off. {number} citations.");
    return pluralize(number, "The answer is complete. {number} citation.", "The answer is complete. {number} citations.");
  }

  /** Those of the answer; of one that has not come to its end, the sources that it cites until then. */
  get citations() {
    return this.answer?.citations ?? [...this.#cited.values()].filter(({ number }) => this.text.includes(`[${number}]`));
  }

  /** What the card of a chip says. */
  facts(chip) {
    const at = chip.dataset.at;
    const citation = this.answer && at != null ? this.answer.citations[at] : this.#cited.get(Number(chip.textContent));
    if (!citation) return null;
    const found = this.#sources.get(citation.document_id);
    return { ...citation, source: found?.source, date: found?.updated_at };
  }

  /** To be kept, and to be shown again by `restored`. */
  get kept() {
    return { question: this.question, answer: this.answer, sources: [...this.#sources.values()], passages: this.#shown };
  }

  restore({ answer, sources, passages }) {
    this.part("steps").replaceChildren();
    for (const source of sources) this.#sources.set(source.document_id, source);
    if (passages) this.passages(passages);
    this.done({ answer, html: answer.html });
    this.end("done");
  }

  /** To be shown of an answer that did not come to its end: what was written of it, and `said`, which has its citations. */
  restoreText(text, html, said) {
    for (const name of ["work", "beside"]) this.part(name).hidden = true;
    for (const citation of said?.citations ?? []) this.#cited.set(citation.number, citation);
    this.#takeOrigins(said?.documents ?? []);
    showReferences(this.part("references"), said?.references ?? [], this.#sources);
    this.#live.add(text);
    this.#live.draw();
    if (html) this.part("answer").replaceChildren(...answerNodes(html));
    this.part("answer").removeAttribute("aria-busy");
    this.part("after").hidden = false;
    this.part("copy").hidden = !text;
  }

  #chip(number) {
    const citation = this.#cited.get(number);
    if (!citation) return `[${number}]`;
    const label = chipLabel(number, replaceControls(citation.title), citation.kind === "url" ? hostOf(citation.link) : "");
    return sourceLink(citation, { class: "cite", "aria-label": label, "data-host": citation.kind === "url" && hostOf(citation.link) }, String(number));
  }

  #list(results) {
    const cited = [...this.#sources.values()].filter((source) => source.number);
    this.#sources = new Map(cited.map((source) => [source.document_id, source]));
    for (const result of results) {
      if (!this.#sources.has(result.document_id)) this.#sources.set(result.document_id, result);
    }
    this.#draw();
  }

  #draw() {
    const order = (source) => source.number ?? Infinity;
    const found = [...this.#sources.values(), ...this.#web.values()].filter((source) => !this.#shown || source.kind === "url");
    const listed = found.sort((a, b) => order(a) - order(b) || 0).slice(0, 12);
    const isAnswered = this.answer && !this.#shown;
    // What the answer cites stands in the list at its end.
    this.part("sources").replaceChildren(...(isAnswered ? [] : listed).map(entry));
    if (this.#shown) this.part("beside").hidden = !listed.length;
    else if (this.answer) this.#fold(listed.filter((source) => !source.number), listed.some((source) => source.number));
  }

  /** What the answer does not cite is folded; where it cites nothing, or everything, nothing stands beside it. */
  #fold(uncited, isCited) {
    const folded = this.part("read-too");
    folded.hidden = !uncited.length;
    folded.open = false;
    folded.firstElementChild.textContent = pluralize(uncited.length, "{number} document found, not cited", "{number} documents found, not cited");
    folded.lastElementChild.replaceChildren(...uncited.map(entry));
    if (!isCited || !uncited.length) this.part("beside").hidden = true;
  }
}
