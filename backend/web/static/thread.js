// The messages of a conversation: questions, and answers with their sources.
import { fileChips } from "./attachments.js";
import { copied } from "./copying.js";
import { translate } from "./messages.js";
import { reveal } from "./scroll_position.js";
import { translateSentence } from "./sentences.js";
import { showSummary } from "./summarised.js";
import { replaceControls } from "./text.js";
import { Turn } from "./turn.js";

export class Thread {
  #root;
  #hooks;
  #reasons;
  #entries = new Map();

  /** `hooks`: edit(message, text), typed(text), draft(message), again(message), choose(id), search(answer, scope), answered(node, message, turn), say(text). `reasons`: why passages are shown, in sentences. */
  constructor(root, reasons, hooks) {
    this.#root = root;
    this.#hooks = hooks;
    this.#reasons = reasons;
  }

  /** Show these messages, a path from a question down; those that are shown already stay as they are. */
  show(messages) {
    let question = "";
    const nodes = messages.map((message) => {
      if (message.role === "user") question = message.text;
      return this.#entry(message, question).node;
    });
    nodes.forEach((node, at) => {
      if (this.#root.children[at] !== node) this.#root.insertBefore(node, this.#root.children[at] ?? null);
    });
    while (this.#root.children.length > nodes.length) this.#root.lastElementChild.remove();
    for (const [id, { node }] of this.#entries) if (!node.isConnected) this.#entries.delete(id);
  }

  turn(id) {
    return this.#entries.get(id)?.turn;
  }

  /** An answer that came to its end while it was shown is not drawn again. */
  settle(id) {
    const entry = this.#entries.get(id);
    entry.state = stateOf({ ...entry.message, status: "finished" });
    part(entry.node, "again").textContent = translate("Regenerate");
  }

  /** What the card of a citation says. */
  facts(chip) {
    return this.turn(Number(chip.closest("[data-message]")?.dataset.message))?.facts(chip);
  }

  editLast() {
    this.#root.querySelector(".asked:nth-last-child(-n + 2) [data-part='edit']")?.click();
  }

  #entry(message, question) {
    let entry = this.#entries.get(message.id);
    if (!entry || entry.state !== stateOf(message)) {
      const former = entry?.node;
      const hadFocus = former?.contains(document.activeElement);
      entry = message.role === "user" ? this.#questionEntry(message) : this.#answerEntry(message, question);
      entry.node.dataset.message = message.id;
      former?.replaceWith(entry.node);
      if (hadFocus) part(entry.node, "again")?.focus();
      this.#entries.set(message.id, entry);
    }
    Object.assign(entry, { message, state: stateOf(message) });
    this.#showVersions(entry.node, message);
    showSummary(entry.node, message);
    return entry;
  }

  #showVersions(node, { id, siblings = [] }) {
    const at = siblings.indexOf(id);
    part(node, "versions").hidden = siblings.length < 2;
    part(node, "place").textContent = `${at + 1}/${siblings.length}`;
    for (const [name, target] of [["before", siblings[at - 1]], ["behind", siblings[at + 1]]]) {
      part(node, name).disabled = target === undefined;
      part(node, name).onclick = () => this.#hooks.choose(target, name);
    }
  }

  #questionEntry(message) {
    const node = made("question");
    part(node, "text").textContent = replaceControls(message.text);
    part(node, "files").replaceChildren(...fileChips(message.files, message.deleted_files));
    part(node, "edit").addEventListener("click", () => this.#edit(node, message));
    if (this.#hooks.draft(message).text) this.#openForm(node, message);
    return { node };
  }

  #edit(node, message) {
    if (!part(node, "editing")) this.#openForm(node, message);
    const form = part(node, "editing");
    const box = form.querySelector("textarea");
    box.focus({ preventScroll: true });
    reveal(form);
    box.setSelectionRange(box.value.length, box.value.length);
  }

  /** The form is in the page while it is open: a browser that fills in forms looks through all of a page whenever one comes or goes. */
  #openForm(node, message) {
    const form = made("editing");
    const box = form.querySelector("textarea");
    const draft = this.#hooks.draft(message);
    const show = (is) => (part(node, "text").hidden = part(node, "tools").hidden = is);
    const close = () => {
      draft.keep("");
      form.remove();
      this.#hooks.typed("");
      show(false);
      part(node, "edit").focus();
    };
    let isUnderway = false;
    const send = async () => {
      const text = box.value.trim();
      if (!text || isUnderway) return;
      isUnderway = true;
      try {
        if (await this.#hooks.edit(message, text)) close();
      } finally {
        isUnderway = false;
      }
    };
    part(form, "cancel").addEventListener("click", close);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    box.addEventListener("input", () => {
      draft.keep(box.value === message.text ? "" : box.value);
      this.#hooks.typed(box.value);
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      else if (!isSending(event)) return;
      // A key that is held opens the form again by the button that has the focus then.
      else if (!event.repeat) send();
      event.preventDefault();
    });
    part(node, "tools").before(form);
    show(true);
    box.value = draft.text || message.text;
  }

  #answerEntry(message, question) {
    const node = made("answer");
    const turn = new Turn(node, question);
    if (message.status === "finished" && !message.withheld) turn.restore(restorable(message, this.#reasons));
    else if (message.status !== "running" || message.withheld) restorePart(turn, message);
    if (message.status !== "running" && !message.withheld) message.losses.forEach((loss) => turn.lost(loss));
    part(node, "again").textContent = message.status === "finished" && !message.withheld ? translate("Regenerate") : translate("Ask again");
    node.querySelector("[data-everything]").addEventListener("click", () => this.#hooks.search(message, "everything"));
    node.querySelector("[data-only-files]").addEventListener("click", () => this.#hooks.search(message, "files"));
    part(node, "again").addEventListener("click", () => this.#hooks.again(message));
    part(node, "copy").addEventListener("click", async () => this.#hooks.say(await copied(turn, part(node, "copy"))));
    this.#hooks.answered(node, message, turn);
    return { node, turn };
  }
}

/** Enter sends, unless a text is being composed by it, as in Japanese. */
export function isSending(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing;
}

export const part = (node, name) => node.querySelector(`[data-part="${name}"]`);
export const made = (template) => document.getElementById(template).content.firstElementChild.cloneNode(true);
const stateOf = ({ status, withheld }) => `${status} ${Boolean(withheld)}`;

/** What there is of an answer that is withheld, was stopped, was interrupted, or failed; and why it is no more. */
export function restorePart(turn, { text, html, answer, notice, problem }) {
  turn.restoreText(text, html, answer);
  if (problem) turn.fail(problem);
  turn.part("ended").textContent = translateSentence(notice ?? "");
  turn.part("ended").hidden = !notice;
}

/** An answer as the server keeps it, in the form in which a turn keeps one. */
export function restorable({ answer, html }, reasons) {
  const sources = (answer.documents ?? []).map(({ number, cited, sections, ...document }) => ({
    ...document,
    number: cited ? number : undefined,
    section: sections[0]?.section,
    span: sections[0]?.span,
  }));
  return { answer: { ...answer, html }, sources, passages: shownInstead(answer, reasons) };
}

/** The passages of an answer that no language model wrote, and why it did not. */
function shownInstead({ answer, answered, model, passages = [], passages_reason: kept }, reasons) {
  if (kept) return { reason: kept, sentence: reasons[kept], passages };
  if (answered && model !== null) return null;
  // Of an answer without a stored reason.
  const known = Object.keys(reasons).find((reason) => reasons[reason] === answer.trim());
  const reason = answered ? "no_model" : (known ?? (model === null ? "web_alone" : "model_broke_off"));
  return { reason, sentence: reasons[reason], passages };
}
