// Files for the next question: dropped, pasted or chosen; uploaded one after the other, and shown as chips.
import { pluralize, translate } from "./messages.js";
import { joinSentences, translateSentence } from "./sentences.js";
import { send } from "./stream.js";
import { documentUrl, make, replaceControls } from "./text.js";

const FILES = "/api/files";
const PAUSE = 400;
const MOST = 50;
/** Bytes of a file, as the server allows: more is not even sent. */
const LARGEST = 20_000_000;
const url = (id) => `${FILES}/${encodeURIComponent(id)}`;
const LOST = translate("The connection to Quarry was lost. Remove it, then add it again.");

/** The files of the box. `say(text)` tells what happened. */
export class Attachments {
  #list;
  #form;
  #say;
  #kept;
  #entries = [];
  #uploading = Promise.resolve();

  /** `kept`: where the files that are not sent are remembered. */
  constructor(form, list, input, button, say, kept) {
    this.#kept = kept;
    this.#list = list;
    this.#form = form;
    this.#say = say;
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    form.addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
    this.#watchDrops();
    this.#restore(kept.ids);
  }

  /** Show the files again that were there before the page was loaded anew; those that are gone are left out. */
  #restore(ids) {
    for (const id of ids) {
      this.#uploading = this.#uploading.then(async () => {
        const file = await send("GET", url(id)).catch(() => null);
        if (!file || this.#entries.some((one) => one.file.id === id)) return;
        const entry = this.#enter({ name: file.name }, file);
        this.#remember();
        await this.#read(entry);
      });
    }
  }

  #remember() {
    this.#kept.ids = this.ids.filter(Boolean);
  }

  #watchDrops() {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const mark = (is) => this.#form.classList.toggle("dropping", is);
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(true);
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget ?? mark(false));
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(false);
      this.add(event.dataTransfer.files);
    });
  }

  /** The ids to give with a question. */
  get ids() {
    return this.#entries.map(({ file }) => file.id);
  }

  /** Why no question can be asked with these files now; nothing if one can. */
  get objection() {
    if (this.#entries.some(({ state }) => state === "failed")) return translate("A file could not be read. Remove it, then ask.");
    const waits = this.#entries.some(({ state }) => state !== "ready");
    return waits ? translate("A file is still being read. Ask when it is.") : "";
  }

  /** Leave the box empty; the files belong to the question now, or are kept for later. */
  clear() {
    for (const entry of this.#entries) entry.abort.abort();
    this.#entries = [];
    this.#list.replaceChildren();
    this.#remember();
  }

  add(files) {
    for (const given of files) {
      if (this.#entries.length >= MOST) return this.#say(translate("A question may have {most} files.", { most: MOST }));
      const entry = this.#enter(given, {});
      this.#uploading = this.#uploading.then(() => this.#upload(entry));
    }
  }

  #enter(given, file) {
    const entry = { given, state: "waiting", file, abort: new AbortController() };
    entry.node = this.#chip(entry);
    this.#entries.push(entry);
    this.#list.append(entry.node);
    return entry;
  }

  #chip(entry) {
    const name = replaceControls(entry.given.name);
    const remove = make("button", { type: "button", class: "plain", "aria-label": translate("Remove {name}", { name }) }, "×");
    remove.addEventListener("click", () => this.#remove(entry));
    const progress = make("progress", { max: "1", value: "0", "aria-label": translate("Upload of {name}", { name }) });
    return make("li", {}, make("span", { class: "file-name", title: name }, name), make("span", { class: "dim" }, translate("Waiting")), remove, progress);
  }

  async #upload(entry) {
    if (entry.abort.signal.aborted) return;
    this.#show(entry, "uploading", translate("Uploading"));
    try {
      entry.file = await uploaded(entry);
    } catch (error) {
      if (entry.abort.signal.aborted) return;
      return this.#fail(entry, error.sentence ?? error.message);
    }
    this.#remember();
    return this.#read(entry);
  }

  /** Wait until the file of an entry is read. */
  async #read(entry) {
    try {
      while (entry.file.status === "reading" && !entry.abort.signal.aborted) {
        this.#show(entry, "reading", translate("Reading"));
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
        entry.file = await send("GET", url(entry.file.id), undefined, entry.abort.signal);
      }
    } catch (error) {
      if (entry.abort.signal.aborted) return;
      return this.#fail(entry, error.sentence ?? error.message);
    }
    if (entry.abort.signal.aborted) return;
    if (entry.file.status === "failed") return this.#fail(entry, translateSentence(entry.file.problem));
    if (this.#entries.some((one) => one !== entry && one.file.id === entry.file.id)) return this.#drop(entry);
    this.#show(entry, "ready", "");
    this.#say(this.objection ? "" : translate("Your files are read."));
  }

  #show(entry, state, text) {
    entry.state = state;
    entry.node.className = state;
    entry.node.querySelector(".dim").textContent = text;
    if (state === "ready" || state === "failed") entry.node.querySelector("progress")?.remove();
    else if (state === "reading") entry.node.querySelector("progress").removeAttribute("value");
  }

  #fail(entry, problem) {
    this.#show(entry, "failed", "");
    entry.node.querySelector(".dim").remove();
    entry.node.append(make("span", { class: "file-problem", role: "alert" }, replaceControls(problem)));
    this.#say(this.objection);
  }

  #drop(entry) {
    entry.abort.abort();
    entry.node.remove();
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.#remember();
  }

  #remove(entry) {
    const next = entry.node.nextElementSibling ?? entry.node.previousElementSibling;
    this.#drop(entry);
    (next?.querySelector("button") ?? this.#form.querySelector("textarea")).focus();
    this.#say(translate("{name} was removed.", { name: replaceControls(entry.given.name) }));
    // What nothing has is of no use any more; another tab may have sent it since.
    if (entry.file.id && !entry.file.used) send("DELETE", `${url(entry.file.id)}?unless_used=true`).catch(() => null);
  }
}

/** Upload by XMLHttpRequest: only that says how far it is. */
export function uploaded({ given, node, abort }) {
  if (given.size > LARGEST) return Promise.reject(new Error(tooLarge(given)));
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", FILES);
    request.setRequestHeader("X-CSRF-Token", document.querySelector('meta[name="csrf-token"]')?.content ?? "");
    request.responseType = "json";
    const progress = node.querySelector("progress");
    request.upload.addEventListener("progress", ({ loaded, total }) => (progress.value = loaded / (total || 1)));
    request.addEventListener("load", () => {
      if (request.status === 202) return resolve(request.response);
      const { detail, advice } = request.response ?? {};
      reject(new Error(joinSentences(translateSentence(detail), translateSentence(advice)) || LOST));
    });
    for (const end of ["error", "abort"]) request.addEventListener(end, () => reject(new Error(LOST)));
    abort.signal.addEventListener("abort", () => request.abort());
    const form = new FormData();
    form.append("file", given);
    request.send(form);
  });
}

function tooLarge({ name, size }) {
  const [number, most] = [size, LARGEST].map((each) => each.toLocaleString("en"));
  return translate("{name} has {number} bytes; a file may have {most}. Split it, or leave out what the question does not need.", { name, number, most });
}

/** The files of a question, as the thread shows them, and how many were deleted since. */
export function fileChips(files = [], deleted = 0) {
  const chips = files.map((file) => {
    const name = make("a", { class: "file-name", href: documentUrl(file.document_id) }, replaceControls(file.name));
    return make("li", {}, name);
  });
  if (deleted) chips.push(make("li", { class: "dim" }, make("span", { class: "file-name" }, pluralize(deleted, "One file was deleted", "{number} files were deleted"))));
  return chips;
}

/** What became of the files of a question, with the way to search everything; what is not kept has none. */
export function showScope(node, given) {
  node.hidden = !given?.sentence;
  node.querySelector("span").textContent = replaceControls(translateSentence(given?.sentence ?? ""));
  for (const button of node.querySelectorAll("[data-everything]")) button.hidden = given?.use !== "scope";
  for (const button of node.querySelectorAll("[data-only-files]")) button.hidden = given?.use !== "everything";
}
