// How a question finds its sources: looked up first, where the switches say, or by a model that decides.
import { translate } from "./messages.js";

const USUAL = { mode: "chat", knowledge: true, web: false, rewrite: true };
const SWITCHES = ["knowledge", "web", "rewrite"];
const HINTS = { rewrite: translate("A language model writes what else to ask than the question itself.") };

export class ModeChoice {
  #root;
  #key;
  #isWebOn;
  #say;
  #chosen = { ...USUAL };
  /** The assistant that is asked, as the API has it; null for the default one. */
  #assistant = null;

  /** `say` tells why a switch cannot be used. */
  constructor(root, say) {
    this.#root = root;
    this.#key = `mode ${root.dataset.owner}`;
    this.#isWebOn = Boolean(root.dataset.web);
    this.#say = say;
    for (const button of root.querySelectorAll("[data-mode]")) {
      button.addEventListener("click", () => this.#choose({ mode: button.dataset.mode }));
    }
    for (const name of SWITCHES) this.#switch(name).addEventListener("click", () => this.#turn(name));
    this.recall();
  }

  /** As a request has it. */
  get body() {
    const { mode, knowledge, rewrite } = this.#chosen;
    const web = this.#chosen.web && !this.#objectionToWeb;
    if (mode === "research") return { knowledge, web };
    return mode === "agent" ? { mode } : { mode, knowledge, web, rewrite };
  }

  /** Whether a question begins research. */
  get isResearch() {
    return this.#chosen.mode === "research";
  }

  /** What this person chose last. */
  recall() {
    this.#take(JSON.parse(localStorage.getItem(this.#key) ?? "{}"));
  }

  /** As a question was asked; in Agent mode the switches stay as they were. */
  follow({ mode, knowledge, web, rewrite }) {
    this.recall();
    this.#take(mode === "agent" ? { mode } : { mode: "chat", knowledge: knowledge ?? true, web: web ?? false, rewrite: rewrite ?? true });
  }

  /** Whom the question goes to, which may keep it from the web. */
  askOf(assistant) {
    this.#assistant = assistant;
    this.#draw();
  }

  #take(choice) {
    this.#chosen = { ...this.#chosen, ...choice };
    const { hidden } = this.#root.querySelector(".mode-choice");
    if (hidden || !this.#root.querySelector(`[data-mode="${this.#chosen.mode}"]`)) this.#chosen.mode = "chat";
    this.#draw();
  }

  #choose(choice) {
    this.#take(choice);
    localStorage.setItem(this.#key, JSON.stringify(this.#chosen));
  }

  #turn(name) {
    if (this.#objection(name)) return this.#say(this.#objection(name));
    this.#choose({ [name]: !this.#chosen[name] });
  }

  /** Why a switch cannot be used now. */
  #objection(name) {
    if (this.#chosen.mode === "agent") return translate("In Agent mode the AI decides by itself when to search");
    return name === "web" ? this.#objectionToWeb : "";
  }

  get #objectionToWeb() {
    if (!this.#isWebOn) return translate("The web is switched off. An admin can switch it on.");
    if (!this.#assistant) return "";
    // Research asks the web for an assistant that searches no documents, too.
    const { searches, searches_web: mayAsk } = this.#assistant;
    return mayAsk && (searches || this.isResearch) ? "" : translate("This assistant does not search the web.");
  }

  #draw() {
    const isAgent = this.#chosen.mode === "agent";
    for (const button of this.#root.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === this.#chosen.mode));
    }
    for (const name of SWITCHES) {
      const button = this.#switch(name);
      const isOn = this.#chosen[name] && !(name === "web" && this.#objectionToWeb);
      button.setAttribute("aria-checked", String(isOn));
      button.setAttribute("aria-disabled", String(Boolean(this.#objection(name))));
      button.title = this.#objection(name) || (HINTS[name] ?? "");
    }
    this.#root.querySelector("#modes-why").hidden = !isAgent;
    this.#root.querySelector("#modes-research")?.toggleAttribute("hidden", !this.isResearch);
    // Agents of research word their searches themselves.
    this.#switch("rewrite").hidden = this.isResearch || this.#root.querySelector(".mode-choice").hidden;
  }

  #switch(name) {
    return this.#root.querySelector(`[data-switch="${name}"]`);
  }
}

/** The mode of a question, as a request has it. */
export function modeOf({ mode, knowledge, web, rewrite }) {
  return mode === "agent" ? { mode } : { mode: "chat", knowledge, web, rewrite };
}
