// The files of a project or an assistant: listed, added by choosing or dropping, removed.
import { uploaded } from "./attachments.js";
import { translate } from "./messages.js";
import { translateSentence } from "./sentences.js";
import { send } from "./stream.js";
import { documentUrl, isolated, make, replaceControls } from "./text.js";

const FILES = "/api/files";
const PAUSE = 400;
const MEGABYTE = 1000000;

function sizeOf(bytes) {
  if (bytes >= MEGABYTE) return translate("{number} MB", { number: (bytes / MEGABYTE).toFixed(1) });
  return translate("{number} kB", { number: Math.ceil(bytes / 1000) });
}

class SharedFiles {
  #section;
  #url;
  #files = [];
  #mayAdd = false;
  #adding = Promise.resolve();
  #pending = 0;
  #timer;

  constructor(section) {
    this.#section = section;
    this.#url = section.dataset.sharedFiles;
    const input = this.#part("input");
    this.#part("choose").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.#add([...input.files]);
      input.value = "";
    });
    this.#watchDrops();
    this.#part("others").addEventListener("toggle", () => this.#showOwn());
    this.#attempt(() => this.#refresh());
  }

  #part(name) {
    return this.#section.querySelector(`[data-${name}]`);
  }

  #say(text) {
    this.#part("said").textContent = replaceControls(text);
  }

  #watchDrops() {
    const isMeant = (event) => this.#mayAdd && event.dataTransfer?.types.includes("Files");
    const mark = (is) => this.#section.classList.toggle("dropping", is);
    this.#section.addEventListener("dragover", (event) => {
      if (!isMeant(event)) return;
      event.preventDefault();
      mark(true);
    });
    this.#section.addEventListener("dragleave", (event) => this.#section.contains(event.relatedTarget) || mark(false));
    this.#section.addEventListener("drop", (event) => {
      if (!isMeant(event)) return;
      event.preventDefault();
      mark(false);
      this.#add([...event.dataTransfer.files]);
    });
  }

  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      this.#say(error.sentence ?? error.message);
    }
  }

  async #refresh() {
    clearTimeout(this.#timer);
    const { files, may_add } = await send("GET", this.#url);
    this.#files = files;
    this.#mayAdd = may_add;
    this.#show();
    if (files.some(({ file }) => file.status === "reading")) {
      this.#timer = setTimeout(() => this.#attempt(() => this.#refresh()), PAUSE);
    }
  }

  #show() {
    const focused = document.activeElement?.dataset?.file;
    this.#part("files").replaceChildren(...this.#files.map((file) => this.#row(file)), ...this.#section.querySelectorAll("li[data-waiting]"));
    if (focused) this.#section.querySelector(`button[data-file="${CSS.escape(focused)}"]`)?.focus();
    this.#part("none").hidden = this.#files.length + this.#pending > 0;
    this.#part("add").hidden = !this.#mayAdd;
    this.#part("others").hidden = false;
    this.#showOwn();
  }

  #row({ file, uploader, mine, may_remove: mayRemove }) {
    const name = replaceControls(file.name);
    const about = [sizeOf(file.size), mine ? translate("Yours") : uploader];
    if (file.status === "reading") about.push(translate("Reading"));
    const shown = make(
      "span",
      { class: "file" },
      file.status === "ready" ? make("a", { href: documentUrl(file.document_id) }, isolated(name)) : isolated(name),
      make("br"),
      make("span", { class: "hint" }, isolated(about.filter(Boolean).join(" · "))),
      file.status === "failed" ? make("span", { class: "file-problem" }, replaceControls(translateSentence(file.problem))) : null,
    );
    const remove = mayRemove && this.#button("quiet", translate("Remove"), translate("Remove {name}", { name }), file.id);
    remove && remove.addEventListener("click", () => this.#attempt(() => this.#remove(file)));
    return make("li", { class: file.status }, ...[shown, remove].filter(Boolean));
  }

  #button(kind, text, label, id) {
    return make("button", { type: "button", class: kind, "aria-label": label, "data-file": id }, text);
  }

  async #remove(file) {
    await send("DELETE", `${this.#url}/${encodeURIComponent(file.id)}`);
    await this.#refresh();
    (this.#part("files").querySelector("button") ?? this.#part("choose")).focus();
    this.#say(translate("{name} was removed.", { name: file.name }));
  }

  #add(files) {
    for (const given of files) {
      const node = this.#waiting(given);
      this.#pending += 1;
      this.#part("files").append(node);
      this.#part("none").hidden = true;
      this.#adding = this.#adding.then(() => this.#upload({ given, node, abort: new AbortController() }));
    }
  }

  #waiting(given) {
    const name = replaceControls(given.name);
    const progress = make("progress", { max: "1", value: "0", "aria-label": translate("Upload of {name}", { name }) });
    const about = make("span", { class: "hint" }, translate("Uploading"));
    return make("li", { "data-waiting": "" }, make("span", { class: "file" }, isolated(name), make("br"), about), progress);
  }

  async #upload(entry) {
    const name = entry.given.name;
    await this.#attempt(async () => {
      try {
        const file = await uploaded(entry);
        await send("PUT", `${this.#url}/${encodeURIComponent(file.id)}`);
        this.#say(translate("{name} was added.", { name }));
      } finally {
        entry.node.remove();
        this.#pending -= 1;
        if (!this.#pending) this.#timer = setTimeout(() => this.#attempt(() => this.#refresh()), 0);
      }
    });
  }

  /** The asker's files that are not here, to be added without another upload. */
  async #showOwn() {
    if (!this.#part("others").open) return;
    await this.#attempt(async () => {
      const { files } = await send("GET", FILES);
      const here = new Set(this.#files.map(({ file }) => file.id));
      const others = files.filter(({ id, status }) => !here.has(id) && status === "ready");
      const nothing = make("li", { class: "hint" }, translate("You have no other files."));
      this.#part("own").replaceChildren(...(others.length ? others.map((file) => this.#ownRow(file)) : [nothing]));
    });
  }

  /** The button that had the focus is gone. */
  #focusOwn() {
    this.#part("others").querySelector("summary").focus();
  }

  #ownRow(file) {
    const name = replaceControls(file.name);
    const add = this.#button("quiet", translate("Add"), translate("Add {name}", { name }));
    add.addEventListener("click", () => this.#attempt(async () => {
      await send("PUT", `${this.#url}/${encodeURIComponent(file.id)}`);
      this.#say(translate("{name} was added.", { name }));
      await this.#refresh();
      this.#focusOwn();
    }));
    const remove = !file.used && this.#button("danger", translate("Delete"), translate("Delete {name} for good", { name }));
    remove && remove.addEventListener("click", () => this.#attempt(async () => {
      await send("DELETE", `${FILES}/${encodeURIComponent(file.id)}?unless_used=true`);
      this.#say(translate("{name} was deleted.", { name }));
      await this.#showOwn();
      this.#focusOwn();
    }));
    const acts = make("span", { class: "acts" }, ...[add, remove].filter(Boolean));
    return make("li", {}, make("span", { class: "file" }, isolated(name), make("br"), make("span", { class: "hint" }, sizeOf(file.size))), acts);
  }
}

for (const section of document.querySelectorAll("[data-shared-files]")) new SharedFiles(section);
