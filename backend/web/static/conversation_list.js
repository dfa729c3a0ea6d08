// The asker's conversations, beside the one that is open: found, named, archived, deleted.
import { changeConversation, deleteConversation, listConversations } from "./conversation_api.js";
import { moveConversation } from "./chat_move.js";
import { groupByDay } from "./local_days.js";
import { openMenu } from "./menu.js";
import { translate } from "./messages.js";
import { Problem } from "./stream.js";
import { isolated, make, replaceControls } from "./text.js";

const PAUSE = 200;
/** Milliseconds until the list is read again while an answer is being written elsewhere, or an item is in use. */
const LOOK_AGAIN = 5_000;
const element = (id) => document.getElementById(id);

export class ConversationList {
  #list = element("list");
  #hooks;
  #shown = [];
  #next = null;
  #current = null;
  #isArchived = false;
  #hasArchivedMatches = false;
  #underway = null;
  #pause = 0;
  #again = 0;

  /** `hooks`: open(id), changed(conversation), removed(id), say(text). */
  constructor(hooks) {
    this.#hooks = hooks;
    this.#put(JSON.parse(this.#list.dataset.first));
    this.#list.addEventListener("click", (event) => this.#click(event));
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    element("find").addEventListener("input", () => {
      clearTimeout(this.#pause);
      this.#pause = setTimeout(() => this.load(), PAUSE);
    });
    element("find").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.#links[0]?.focus();
      else if (event.key === "Escape" && element("find").value) this.#clear();
      else return;
      event.preventDefault();
    });
    element("older").addEventListener("click", () => this.load(this.#next));
    element("archive").addEventListener("click", () => this.#switchArchive());
  }

  /** Mark the conversation that is open. */
  mark(id) {
    this.#current = id;
    for (const link of this.#links) link.toggleAttribute("aria-current", false);
    this.#link(id)?.setAttribute("aria-current", "page");
  }

  /** Read the list anew, or what follows it behind the cursor `before`. */
  async load(before = null) {
    this.#underway?.abort();
    const mine = (this.#underway = new AbortController());
    const values = { archived: this.#isArchived, query: element("find").value.trim(), before };
    await this.#attempt(async () => {
      const page = await listConversations(values, mine.signal);
      clearTimeout(this.#again);
      const isInUse = this.#isInUse;
      if (!before) this.#hasArchivedMatches = page.has_archived_matches;
      if (!isInUse) this.#put({ ...page, conversations: [...(before ? this.#shown : []), ...page.conversations] });
      const isRunning = !before && page.conversations.some((one) => one.running);
      if (isRunning || isInUse) this.#again = setTimeout(() => this.load(), LOOK_AGAIN);
    }, mine.signal);
  }

  /** Whether a menu is open or a title is being written: a new list would take it away. */
  get #isInUse() {
    return this.#list.querySelector('input, [role="menu"]') !== null;
  }

  get #links() {
    return [...this.#list.querySelectorAll("a")];
  }

  #link(id) {
    return this.#links.find((link) => link.dataset.id === id);
  }

  #clear() {
    element("find").value = "";
    this.load();
  }

  #switchArchive() {
    this.#isArchived = !this.#isArchived;
    element("archive").setAttribute("aria-pressed", String(this.#isArchived));
    return this.load();
  }

  /** What the words find in the archive; the button that asked for it goes, so the focus goes to the first of them. */
  async #searchArchive() {
    await this.#switchArchive();
    (this.#links[0] ?? element("find")).focus();
  }

  /** Do what talks to the server, and say what went wrong. */
  async #attempt(act, signal) {
    try {
      await act();
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof Problem)) throw error;
      this.#hooks.say(replaceControls(error.sentence));
    }
  }

  #put({ conversations, next }) {
    const hadFocus = this.#list.contains(document.activeElement);
    const focused = hadFocus ? document.activeElement.closest("li") : null;
    this.#shown = conversations;
    this.#next = next;
    const groups = groupByDay(conversations, (one) => one.updated_at).map(([name, items]) =>
      make("section", {}, make("h2", {}, name), make("ul", {}, ...items.map((one) => this.#item(one)))),
    );
    this.#list.replaceChildren(...(groups.length ? groups : [make("p", { class: "dim" }, this.#nothing)]));
    if (this.#hasArchivedMatches) this.#list.append(this.#archiveHint);
    element("older").hidden = !next;
    if (focused) (this.#link(focused.dataset.id) ?? this.#links[0] ?? element("find")).focus();
    else if (hadFocus) (this.#list.querySelector("p > button") ?? this.#links[0] ?? element("find")).focus();
  }

  get #nothing() {
    if (element("find").value.trim()) return translate("Nothing found.");
    return this.#isArchived ? translate("Nothing is archived.") : translate("What you ask is kept here.");
  }

  get #archiveHint() {
    const shows = make("button", { type: "button", class: "quiet" }, translate("Show them"));
    shows.addEventListener("click", () => this.#searchArchive());
    return make("p", { class: "dim" }, translate("There are archived conversations that match."), " ", shows);
  }

  #item({ id, title, running }) {
    const link = make(
      "a",
      { href: `/chat/${encodeURIComponent(id)}`, "data-id": id, "aria-current": id === this.#current ? "page" : false },
      isolated(title),
    );
    if (running) link.append(make("span", { class: "running" }, make("span", { class: "unseen" }, ` ${translate("is being answered")}`)));
    const label = translate("Options of {title}", { title: replaceControls(title) });
    const more = make(
      "button",
      { type: "button", class: "plain", "aria-label": label, "aria-haspopup": "menu", "aria-expanded": "false" },
      "⋯",
    );
    return make("li", { "data-id": id }, link, more);
  }

  #click(event) {
    const item = event.target.closest("li");
    if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      this.#hooks.open(item.dataset.id);
    }
    const button = event.target.closest('[aria-haspopup="menu"]');
    if (!button) return;
    const one = this.#find(item);
    openMenu(button, [
      [translate("Rename"), () => this.#rename(item)],
      [one.archived ? translate("Unarchive") : translate("Archive"), () => this.#archive(one)],
      [translate("Move to a project"), () => this.#move(one)],
      [translate("Delete"), () => this.#delete(one)],
    ]);
  }

  #find(item) {
    return this.#shown.find((one) => one.id === item.dataset.id);
  }

  #key(event) {
    const link = event.target.closest("a");
    if (!link) return;
    const links = this.#links;
    const at = links.indexOf(link);
    const item = link.closest("li");
    const acts = {
      ArrowDown: () => links[at + 1]?.focus(),
      ArrowUp: () => (links[at - 1] ?? element("find")).focus(),
      Home: () => links[0].focus(),
      End: () => links.at(-1).focus(),
      F2: () => this.#rename(item),
      Delete: () => this.#delete(this.#find(item)),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  /** The title becomes a box: Enter or leaving it keeps what was written, Escape what was there. */
  #rename(item) {
    const one = this.#find(item);
    const box = make("input", { value: one.title, maxlength: "200", "aria-label": translate("Title of the conversation") });
    const back = item.replaceWith.bind(item);
    const editing = make("li", { "data-id": one.id, class: "renaming" }, box);
    let isOver = false;

    const end = (isKept) => {
      if (isOver) return;
      isOver = true;
      const title = box.value.trim();
      const hadFocus = editing.contains(document.activeElement);
      editing.replaceWith(item);
      if (hadFocus) item.querySelector("a").focus();
      if (!isKept || title === one.title) return;
      if (title) this.#change(one, { title }, translate("Renamed."));
      else this.#hooks.say(translate("A title has at least one visible character. It was not renamed."));
    };
    back(editing);
    box.focus();
    box.select();
    box.addEventListener("blur", () => end(true));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        end(event.key === "Enter");
      }
    });
  }

  #archive(one) {
    const said = one.archived ? translate("Taken out of the archive.") : translate("Archived.");
    return this.#change(one, { archived: !one.archived }, said);
  }

  #change(one, changes, said) {
    return this.#attempt(async () => {
      this.#hooks.changed(await changeConversation(one.id, changes));
      this.#hooks.say(said);
      await this.load();
    });
  }

  #move(one) {
    return this.#attempt(async () => {
      const moved = await moveConversation(one);
      if (!moved) return;
      this.#hooks.changed(moved);
      this.#hooks.say(moved.project_id ? translate("It is in the project now.") : translate("It is in no project now."));
      await this.load();
    });
  }

  #delete(one) {
    const dialog = element("deleting");
    element("deleting-title").textContent = replaceControls(one.title);
    dialog.returnValue = "";
    dialog.showModal();
    dialog.addEventListener("close", () => dialog.returnValue === "delete" && this.#deleteNow(one), { once: true });
  }

  #deleteNow(one) {
    return this.#attempt(async () => {
      await deleteConversation(one.id);
      this.#hooks.removed(one.id);
      this.#hooks.say(translate("Deleted."));
      await this.load();
    });
  }
}
