// The files of the box that are not sent yet: they survive a reload of this tab.

export class KeptFiles {
  #key;

  constructor(owner) {
    this.#key = `files ${owner}`;
  }

  /** The ids of uploaded files, in their order. */
  get ids() {
    return JSON.parse(sessionStorage.getItem(this.#key) ?? "[]");
  }

  set ids(ids) {
    if (ids.length) sessionStorage.setItem(this.#key, JSON.stringify(ids));
    else sessionStorage.removeItem(this.#key);
  }
}
