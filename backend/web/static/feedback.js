// What is said of answers: whether they are good, what is wrong with them, and why.
import { translate } from "./messages.js";
import { reveal } from "./scroll_position.js";
import { Problem, send } from "./stream.js";
import { make, replaceControls } from "./text.js";
import { made, part } from "./thread.js";

const url = (id, rest) => `/api/conversations/${encodeURIComponent(id)}${rest}`;

export class FeedbackButtons {
  #say;
  #conversation = null;
  #given = new Map();
  #nodes = new Map();

  constructor(say) {
    this.#say = say;
  }

  /** Read what was said of the answers of a conversation; null where none is open. */
  async open(conversation) {
    if (conversation === this.#conversation) return;
    this.#conversation = conversation;
    this.#given.clear();
    this.#nodes.clear();
    if (!conversation) return;
    await this.#attempt(async () => {
      const found = await send("GET", url(conversation, "/feedback"));
      if (conversation !== this.#conversation) return;
      for (const one of found) this.#given.set(one.message_id, one);
      for (const [id, node] of this.#nodes) this.#mark(node, id);
    });
  }

  /** Let somebody say something of the answer that `node` shows. */
  attach(node, message, turn) {
    this.#nodes.set(message.id, node);
    part(node, "rates").hidden = message.withheld;
    for (const kind of ["good", "bad"]) {
      part(node, kind).addEventListener("click", () => this.#open(node, message.id, turn, kind));
    }
    this.#mark(node, message.id);
  }

  #open(node, id, turn, kind) {
    if (part(node, "opine")?.dataset.kind === kind) return this.#close(node);
    const form = part(node, "opine") ?? this.#make(node, id);
    const given = this.#given.get(id);
    const isSame = given && kindOf(given) === kind;
    form.dataset.kind = kind;
    part(form, "wrong").replaceChildren(...choices(turn));
    part(form, "wrong").value = isSame && given.source ? String(given.source) : "";
    part(form, "wrong-row").hidden = kind === "good";
    part(form, "why").value = isSame ? given.comment : "";
    part(form, "unsay").hidden = !isSame;
    form.setAttribute("aria-label", kind === "good" ? translate("Say that this answer is good") : translate("Say what is wrong with this answer"));
    this.#expanded(node);
    part(form, "why").focus({ preventScroll: true });
    reveal(form);
  }

  /** The form is in the page while it is open, as that of a question that is edited. */
  #make(node, id) {
    const form = made("opine");
    part(form, "close").addEventListener("click", () => this.#close(node));
    part(form, "unsay").addEventListener("click", () => this.#takeBack(node, id));
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.#close(node);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(node, id);
    });
    node.append(form);
    return form;
  }

  /** Nothing where it was closed already, while what it says was sent. */
  #close(node) {
    const form = part(node, "opine");
    if (!form) return;
    form.remove();
    this.#expanded(node);
    part(node, form.dataset.kind).focus();
  }

  #expanded(node) {
    const open = part(node, "opine")?.dataset.kind;
    for (const kind of ["good", "bad"]) part(node, kind).setAttribute("aria-expanded", String(open === kind));
  }

  #mark(node, id) {
    const given = this.#given.get(id);
    for (const kind of ["good", "bad"]) part(node, kind).setAttribute("aria-pressed", String(Boolean(given) && kindOf(given) === kind));
  }

  #send(node, id) {
    const isGood = part(node, "opine").dataset.kind === "good";
    const number = isGood ? 0 : Number(part(node, "wrong").value);
    const said = {
      rating: isGood ? "good" : number ? "wrong_source" : "bad",
      comment: part(node, "why").value.trim(),
      source: number || null,
    };
    return this.#change(node, id, said, translate("Thank you. The admins see it with your question."));
  }

  #takeBack(node, id) {
    return this.#change(node, id, null, translate("Taken back."));
  }

  #change(node, id, said, sentence) {
    return this.#attempt(async () => {
      await send(said ? "PUT" : "DELETE", url(this.#conversation, `/messages/${id}/feedback`), said ?? undefined);
      if (said) this.#given.set(id, { message_id: id, ...said });
      else this.#given.delete(id);
      this.#mark(node, id);
      this.#close(node);
      this.#say(sentence);
    });
  }

  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.#say(replaceControls(error.sentence));
    }
  }
}

const kindOf = ({ rating }) => (rating === "good" ? "good" : "bad");

/** What can be wrong: the answer, or one of the sources that it cites. */
function choices(turn) {
  const sources = new Map(turn.citations.map(({ number, title }) => [number, title]));
  const listed = [...sources].sort(([a], [b]) => a - b);
  const named = listed.map(([number, title]) => make("option", { value: number }, translate("Source {number}: {title}", { number, title: replaceControls(title).slice(0, 80) })));
  return [make("option", { value: "" }, translate("The answer")), ...named];
}
