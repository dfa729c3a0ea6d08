// Which assistant answers in the conversation that is shown, or in the one that begins.
import { translate } from "./messages.js";
import { Problem, send } from "./stream.js";
import { make, replaceControls } from "./text.js";

const DEFAULT = "default";
const element = (id) => document.getElementById(id);

export class ChatAssistant {
  #hooks;
  #shown = DEFAULT;
  #conversation = null;

  /** `hooks`: attempt(act), use(id), asked(assistant) with who is asked, null for the default one. */
  constructor(hooks) {
    this.#hooks = hooks;
    element("use-default").addEventListener("click", () => this.#goOn());
  }

  /** The one that is asked. */
  get id() {
    return this.#shown;
  }

  /** Show who answers in a conversation; null for the one that begins, for which the address says it. */
  show(conversation) {
    const id = conversation?.assistant_id ?? (new URLSearchParams(location.search).get("assistant") || DEFAULT);
    const isSame = id === this.#shown && (conversation?.id ?? null) === this.#conversation;
    this.#shown = id;
    this.#conversation = conversation?.id ?? null;
    if (isSame) return;
    element("assistant").hidden = element("assistant-empty").hidden = true;
    this.#lack(false);
    this.#greet(null);
    this.#hooks.asked(null);
    if (id !== DEFAULT) this.#read(id);
  }

  /** Look whether it can still be asked, after something was refused. */
  look() {
    if (this.#shown !== DEFAULT) this.#read(this.#shown);
  }

  async #read(id) {
    const of = this.#conversation;
    const isCurrent = () => id === this.#shown && of === this.#conversation;
    await this.#hooks.attempt(async () => {
      try {
        const found = await send("GET", `/api/assistants/${encodeURIComponent(id)}`);
        if (!isCurrent()) return;
        element("assistant-name").textContent = replaceControls(found.name);
        element("assistant-name").href = `/assistants/${encodeURIComponent(id)}`;
        this.#hooks.asked(found);
        element("assistant-empty").hidden = !found.finds_nothing;
        if (of) element("assistant").hidden = false;
        else this.#greet(found);
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 404) throw error;
        if (isCurrent()) this.#lack(true);
      }
    });
  }

  /** What stands where nothing was said yet: the assistant, and questions to begin with. */
  #greet(assistant) {
    element("opening").classList.toggle("by-assistant", assistant !== null);
    element("starters").hidden = assistant === null;
    if (!assistant) return;
    const { name, description, starters } = assistant;
    const lead = make("p", { class: "lead" }, replaceControls(name));
    const hint = description && make("p", { class: "hint" }, replaceControls(description));
    const tries = starters.map((starter) => make("li", {}, this.#starter(starter)));
    const list = tries.length ? [make("h2", {}, translate("Try")), make("ul", { class: "tries" }, ...tries)] : [];
    element("starters").replaceChildren(...[lead, hint, ...list].filter(Boolean));
  }

  #starter(text) {
    const button = make("button", { type: "button", class: "try" }, replaceControls(text));
    button.addEventListener("click", () => {
      element("q").value = text;
      element("ask").requestSubmit();
    });
    return button;
  }

  /** Whether there is nobody to ask. */
  #lack(is) {
    element("assistant-gone").hidden = !is;
    element("gone-hint").hidden = !this.#conversation;
    element("opening").classList.toggle("by-nobody", is);
    element("go").disabled = element("q").disabled = is;
  }

  async #goOn() {
    if (this.#conversation) await this.#hooks.attempt(() => this.#hooks.use(DEFAULT));
    else {
      history.replaceState(null, "", "/chat");
      this.show(null);
    }
    element("q").focus();
  }
}
