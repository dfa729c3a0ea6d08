// One turn on the page: its steps, its sources, its answer.
import { entry, quoted } from "./cited.js";
import { Live } from "./live.js";
import { passageNodes } from "./passages.js";
import { counted, documentUrl, replaceControls, make, parsed } from "./text.js";

const HELP = {
  semantic_query_rephrase: "the model's rephrasing",
  keyword_query_expansion: "the model's key words",
  selection: "the model's choice of passages",
  language_model: "the chosen language model",
};

const element = (id) => document.getElementById(id);

/** What is said where an answer, or sentences of it, cite nothing. */
function uncitedNotice({ uncited, citations }) {
  if (!uncited?.length) return "";
  if (!citations.length) return "This answer cites no document. Check it before you rely on it.";
  if (uncited.length === 1) return "One sentence cites no document; it is marked.";
  return `${uncited.length} sentences cite no document; they are marked.`;
}

export class Turn {
  #steps = new Map();
  #sources = new Map();
  #cited = new Map();
  #live;
  #shown = null;
  answer = null;

  constructor(question) {
    this.question = question;
    this.#live = new Live(element("answer"), (number) => this.#chip(number));
    element("opening").hidden = true;
    element("turn").hidden = false;
    element("asked").textContent = replaceControls(question);
    for (const id of ["steps", "sources", "answer", "passages"]) element(id).replaceChildren();
    for (const id of ["answer", "beside"]) element(id).hidden = false;
    for (const id of ["thinking", "cut", "uncited", "trouble", "after"]) element(id).hidden = true;
    element("thinking").lastElementChild.textContent = "";
    element("read-too").hidden = true;
    element("work").open = true;
    element("work").hidden = false;
    element("answer").setAttribute("aria-busy", "true");
    this.step("search", "Searching");
  }

  get text() {
    return this.#live.text;
  }

  /** Say what is being done; a step that is known already says something new. */
  step(key, text, kind = "now") {
    const item = this.#steps.get(key) ?? make("li");
    item.textContent = text;
    element("steps").append(...(item.isConnected ? [] : [item]));
    this.#steps.set(key, item);
    for (const other of element("steps").children) other.classList.remove("now");
    item.className = kind;
  }

  queries({ variants }) {
    const texts = [...new Set(variants.map((variant) => replaceControls(variant.text)))];
    this.step("search", `Searched: ${texts.join(" · ")}`);
  }

  narrowed(filters) {
    const { inferred = [], ...chosen } = filters;
    const said = Object.values(chosen).flat().filter((value) => value != null);
    if (said.length) this.step("narrowed", `Narrowed to ${said.map((value) => replaceControls(String(value))).join(" · ")}`);
    const read = inferred.map((one) => `“${replaceControls(one.words)}” as ${one.kind}: ${replaceControls(one.meaning)}`);
    if (read.length) this.step("inferred", `Placed first, reading ${read.join(" · ")}`);
  }

  results({ results }) {
    this.step("found", `Found ${counted(results.length, "passage")}`);
    this.#list(results);
  }

  selected({ results }) {
    const titles = [...new Set(results.map((result) => replaceControls(result.title)))];
    this.step("read", `Reading ${titles.slice(0, 4).join(" · ")}${titles.length > 4 ? " …" : ""}`);
    this.#list(results);
  }

  lost({ step, reason }) {
    this.step(`lost ${step}`, `Done without ${HELP[step] ?? replaceControls(step)}: ${replaceControls(reason)}`, "lost");
  }

  reasoning({ text }) {
    element("thinking").hidden = false;
    element("thinking").lastElementChild.append(replaceControls(text));
  }

  citation(citation) {
    this.#cited.set(citation.number, citation);
    const known = this.#sources.get(citation.document_id) ?? { ...citation };
    this.#sources.set(citation.document_id, { ...known, number: citation.number });
    this.#draw();
  }

  /** Passages where no language model answers: they take the place of its answer and of the sources. */
  passages(shown) {
    this.#shown = shown;
    element("passages").replaceChildren(...passageNodes(shown));
    element("beside").hidden = true;
    element("answer").hidden = shown.reason !== "model_broke_off";
  }

  write({ text }) {
    if (!this.#live.text && !this.#shown) this.step("write", "Writing the answer");
    this.#live.add(text);
  }

  /** The whole answer, as the server rendered and cleaned it. */
  done({ answer, html }) {
    this.answer = { ...answer, html };
    element("answer").replaceChildren(...parsed(html));
    element("cut").hidden = !answer.cut;
    // What was found and not used, as for a greeting, is no source.
    if (answer.documents?.length === 0) element("beside").hidden = true;
    element("uncited").textContent = uncitedNotice(answer);
    element("uncited").hidden = !element("uncited").textContent;
    for (const citation of answer.citations) {
      const known = this.#sources.get(citation.document_id) ?? { ...citation };
      this.#sources.set(citation.document_id, { ...known, ...quoted(known, citation) });
    }
    const by = answer.model ? ` by ${replaceControls(answer.model)}` : "";
    element("spent").textContent = `${answer.seconds.toFixed(1)} s${by}`;
    this.#draw();
  }

  /** Leave nothing of what was read: not in the answer, its sources or the steps. */
  clear() {
    this.#live.draw();
    this.#live = new Live(element("answer"), (number) => this.#chip(number));
    for (const id of ["steps", "sources", "answer", "passages"]) element(id).replaceChildren();
    for (const id of ["thinking", "beside", "card"]) element(id).hidden = true;
    element("thinking").lastElementChild.textContent = "";
    element("read-too").lastElementChild.replaceChildren();
    for (const known of [this.#steps, this.#sources, this.#cited]) known.clear();
    this.#shown = null;
  }

  /** End of the turn, however it ended. */
  end(kind, text) {
    this.#live.draw();
    if (this.answer) element("answer").replaceChildren(...parsed(this.answer.html));
    element("answer").removeAttribute("aria-busy");
    if (kind === "done") {
      this.#steps.get("write")?.remove();
      for (const item of this.#steps.values()) item.classList.remove("now");
      element("work").open = false;
      element("work").hidden = !element("steps").children.length;
    } else this.step("end", text, "lost");
    element("after").hidden = false;
    element("copy").hidden = !this.text && !this.answer;
  }

  /** How the turn ended, in a sentence. */
  get outcome() {
    if (this.#shown) return this.#shown.sentence;
    return `The answer ${this.answer.cut ? "was cut off" : "is complete"}. ${this.answer.citations.length} citations.`;
  }

  /** What the card of a chip says. */
  facts(chip) {
    const at = chip.dataset.at;
    const citation = at == null ? this.#cited.get(Number(chip.textContent)) : this.answer?.citations[at];
    if (!citation) return null;
    const found = this.#sources.get(citation.document_id);
    return { ...citation, source: found?.source, date: found?.updated_at };
  }

  /** To be kept, and to be shown again by `restored`. */
  get kept() {
    return { question: this.question, answer: this.answer, sources: [...this.#sources.values()], passages: this.#shown };
  }

  restore({ answer, sources, passages }) {
    element("steps").replaceChildren();
    for (const source of sources) this.#sources.set(source.document_id, source);
    if (passages) this.passages(passages);
    this.done({ answer, html: answer.html });
    this.end("done");
  }

  #chip(number) {
    const citation = this.#cited.get(number);
    if (!citation) return `[${number}]`;
    const label = `Source ${number}: ${replaceControls(citation.title)}`;
    const href = documentUrl(citation.document_id);
    return make("a", { class: "cite", href, "aria-label": label }, String(number));
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
    const listed = [...this.#sources.values()].sort((a, b) => order(a) - order(b) || 0).slice(0, 12);
    const cited = this.answer ? listed.filter((source) => source.number) : listed;
    element("sources").replaceChildren(...cited.map(entry));
    if (this.answer) this.#fold(listed.filter((source) => !source.number), cited.length > 0);
  }

  /** What the answer does not cite is folded; where it cites nothing, nothing stands beside it. */
  #fold(uncited, isCited) {
    const folded = element("read-too");
    folded.hidden = !uncited.length;
    folded.open = false;
    folded.firstElementChild.textContent = `${counted(uncited.length, "document")} found, not cited`;
    folded.lastElementChild.replaceChildren(...uncited.map(entry));
    if (!isCited) element("beside").hidden = true;
  }
}
