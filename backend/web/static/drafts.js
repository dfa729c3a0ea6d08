// What was typed and not sent, by conversation, and by question that is edited; it survives the tab, until its person signs out.
const MOST = 50;
/** Tells the other tabs of a browser who signs out. */
const SIGN_OUTS = "sign-outs";
const prefixOf = (owner) => `draft ${owner} `;

export class Drafts {
  #prefix;
  #signOuts = new BroadcastChannel(SIGN_OUTS);
  #isOver = false;

  constructor(owner) {
    this.#prefix = prefixOf(owner);
    this.#signOuts.addEventListener("message", ({ data }) => {
      if (data !== owner) return;
      this.#isOver = true;
      // What was stored before this tab heard of it.
      drop((key) => key.startsWith(this.#prefix));
    });
  }

  get(conversation) {
    return this.#read(this.#key(conversation)).text ?? "";
  }

  put(conversation, text) {
    this.#put(this.#key(conversation), text);
  }

  drop(conversation) {
    localStorage.removeItem(this.#key(conversation));
  }

  /** Leave nothing of a conversation that is deleted. */
  dropAll(conversation) {
    this.drop(conversation);
    drop((key) => key.startsWith(`${this.#key(conversation)} `));
  }

  /** The draft of a question that is edited, as something to be read and kept. */
  edited(conversation, message) {
    const key = `${this.#key(conversation)} ${message}`;
    return { text: this.#read(key).text ?? "", keep: (text) => this.#put(key, text) };
  }

  #key(conversation) {
    return this.#prefix + (conversation ?? "new");
  }

  #put(key, text) {
    if (!text) return localStorage.removeItem(key);
    // What a tab still shows of somebody who has signed out is nobody's draft any more.
    if (this.#isOver) return;
    try {
      localStorage.setItem(key, JSON.stringify({ text, at: Date.now() }));
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
    }
    this.#dropOldest();
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

/** Leave none of a person's drafts to who uses this browser next; their other tabs store none either. */
export function dropDrafts(owner) {
  drop((key) => key.startsWith(prefixOf(owner)));
  new BroadcastChannel(SIGN_OUTS).postMessage(owner);
}

function drop(isMeant) {
  for (const key of Object.keys(localStorage).filter(isMeant)) localStorage.removeItem(key);
}
