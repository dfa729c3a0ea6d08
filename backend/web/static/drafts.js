// What was typed and not sent, by conversation; it survives the tab, and nobody else sees it who signs in here.
const MOST = 50;

export class Drafts {
  #prefix;

  constructor(owner) {
    this.#prefix = `draft ${owner} `;
  }

  get(conversation) {
    return this.#read(this.#key(conversation)).text ?? "";
  }

  put(conversation, text) {
    if (!text) return this.drop(conversation);
    try {
      localStorage.setItem(this.#key(conversation), JSON.stringify({ text, at: Date.now() }));
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
    }
    this.#dropOldest();
  }

  drop(conversation) {
    localStorage.removeItem(this.#key(conversation));
  }

  #key(conversation) {
    return this.#prefix + (conversation ?? "new");
  }

  #read(key) {
    return JSON.parse(localStorage.getItem(key) ?? "{}");
  }

  #dropOldest() {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.#prefix));
    const byAge = keys.sort((one, other) => this.#read(other).at - this.#read(one).at);
    for (const key of byAge.slice(MOST)) localStorage.removeItem(key);
  }
}
