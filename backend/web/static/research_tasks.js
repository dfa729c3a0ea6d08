// What the agents of research do now, task by task, beneath the tasks that the server rendered.
import { pluralize, translate } from "./messages.js";
import { translateSentence } from "./sentences.js";
import { make, replaceControls } from "./text.js";

const LONGEST = 160;
const DOES = {
  search: (about) => translate("Searches: {about}", { about }),
  visit: (about) => translate("Reads: {about}", { about }),
  reflect: (about) => translate("Asks further: {about}", { about }),
  answer: (about) => translate("Answers: {about}", { about }),
  code: (about) => translate("Calculates: {about}", { about }),
};

const shortened = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

function sentenceOf({ action, about, question }) {
  const said = replaceControls((about.length ? about : [question]).join(" · "));
  return DOES[action]?.(shortened(said)) ?? shortened(said);
}

const BROUGHT = {
  search: (brought) => pluralize(brought, "{number} new source", "{number} new sources"),
  visit: (brought) => pluralize(brought, "{number} page read", "{number} pages read"),
};

export class TaskTree {
  #lists = new Map();
  #steps = new Map();

  /** A task that starts once more begins anew. */
  begin(number) {
    this.#lists.set(number, make("ol", { class: "steps", "aria-label": translate("What this task does") }));
    for (const key of this.#steps.keys()) if (key.startsWith(`${number} `)) this.#steps.delete(key);
  }

  /** What a task knows from earlier research, before it searches; what the plan knows, no task shows. */
  addFindings(task, findings) {
    const items = findings.map(({ id, question }) => {
      const found = translate("Found earlier: {question}", { question: shortened(replaceControls(question)) });
      return make("li", { dir: "auto" }, make("a", { href: `/knowledge/${encodeURIComponent(id)}` }, found));
    });
    this.#lists.get(task)?.append(...items);
  }

  start(action) {
    const item = make("li", { class: "now", dir: "auto" }, sentenceOf(action));
    this.#steps.set(`${action.task} ${action.step}`, item);
    this.#lists.get(action.task)?.append(item);
  }

  finish({ task, step, action, brought, notes }) {
    const item = this.#steps.get(`${task} ${step}`);
    item?.classList.remove("now");
    if (brought && BROUGHT[action]) item?.append(make("span", { class: "dim" }, ` ${BROUGHT[action](brought)}`));
    const said = notes.map((note) => make("li", { class: "lost", dir: "auto" }, replaceControls(translateSentence(note))));
    this.#lists.get(task)?.append(...said);
  }

  end(number) {
    for (const item of this.#lists.get(number)?.children ?? []) item.classList.remove("now");
  }

  forget(number) {
    this.#lists.delete(number);
  }

  /** Put what is known of each task beneath it; of one that has ended, only its end counts. */
  draw(root) {
    for (const item of root.querySelectorAll("[data-task]")) {
      const list = this.#lists.get(Number(item.dataset.task));
      if (list?.children.length && !item.classList.contains("ended")) item.querySelector("h3").after(list);
      else list?.remove();
    }
  }
}
