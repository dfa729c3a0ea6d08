// A try-out beside an editor: a question is asked with the settings as they stand in the form, and nothing is kept.
import { watchCards } from "./cards.js";
import { copied } from "./copying.js";
import { translate } from "./messages.js";
import { tooLong } from "./question_length.js";
import { Problem, stream } from "./stream.js";
import { isSending } from "./thread.js";
import { Turn, hear } from "./turn.js";

const element = (id) => document.getElementById(id);

class TryOut {
  #form = element("ask");
  #root = element("turn");
  #read;
  #isReady;
  #turn = null;
  #underway = null;

  constructor(read, isReady) {
    this.#read = read;
    this.#isReady = isReady;
    this.#form.addEventListener("submit", (event) => this.#submit(event));
    element("q").addEventListener("keydown", (event) => isSending(event) && this.#submit(event));
    element("stop").addEventListener("click", () => this.#underway?.abort());
    const copy = this.#root.querySelector("[data-part='copy']");
    copy.addEventListener("click", async () => this.#say(await copied(this.#turn, copy)));
    addEventListener("pagehide", () => this.#underway?.abort());
    watchCards(this.#root, element("card"), (chip) => this.#turn?.facts(chip));
  }

  #submit(event) {
    event.preventDefault();
    const question = element("q").value.trim();
    if (question && this.#isReady() && !this.#refuses(question)) this.#ask(question);
  }

  /** Whether a question is too long, which is said. */
  #refuses(question) {
    const objection = tooLong(question, Number(this.#form.dataset.longest));
    element("too-long").textContent = objection;
    element("too-long").hidden = !objection;
    return Boolean(objection);
  }

  /** Ask in place of the question before, which ends. */
  async #ask(question) {
    this.#underway?.abort();
    const mine = (this.#underway = new AbortController());
    this.#root.hidden = false;
    this.#turn = new Turn(this.#root, question);
    this.#show(true);
    this.#say(translate("Searching"));
    try {
      await this.#hear(question, mine.signal);
      this.#say(this.#turn.outcome);
    } catch (error) {
      if (mine === this.#underway) this.#end(error, mine.signal.aborted);
    } finally {
      if (mine === this.#underway) this.#show(false);
    }
  }

  async #hear(question, signal) {
    const turn = this.#turn;
    const events = stream(this.#form.dataset.address, { ...this.#read(), question }, signal);
    for await (const { name, data } of events) hear(turn, name, data, (text) => this.#say(text));
    if (!turn.answer) throw new Problem({ title: translate("The answer ended before it was complete"), advice: translate("Ask again.") });
    turn.end("done");
  }

  #end(error, isStopped) {
    if (isStopped) this.#turn.end("stopped", translate("Stopped"));
    else if (error instanceof Problem) this.#turn.fail(error);
    else throw error;
    this.#say(isStopped ? translate("Stopped") : "");
  }

  /** Of the two buttons, the one that is shown takes the focus over from the other. */
  #show(isAsking) {
    const [shown, other] = isAsking ? [element("stop"), element("go")] : [element("go"), element("stop")];
    const hadFocus = document.activeElement === other;
    shown.hidden = false;
    other.hidden = true;
    if (hadFocus) shown.focus();
  }

  #say(text) {
    element("status").textContent = text;
  }
}

/** `read()`: the settings as they stand in the form, as the API takes them. `isReady()`: whether they can be tried; it says why not. */
export function watchTryOut(read, isReady = () => true) {
  return new TryOut(read, isReady);
}
