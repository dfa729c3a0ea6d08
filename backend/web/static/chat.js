// Chat: conversations that last. What is shown is what the server keeps; an answer that runs is followed.
import { Attachments } from "./attachments.js";
import { watchCards } from "./cards.js";
import { ChatAssistant } from "./chat_assistant.js";
import { chosenProject, showProject } from "./chat_project.js";
import { beginConversation, changeConversation, eventsUrl, postQuestion, readConversation, regenerate, stopAnswers } from "./conversation_api.js";
import { ConversationList } from "./conversation_list.js";
import { joined, newestOf, readEnd } from "./conversation_path.js";
import { Drafts } from "./drafts.js";
import { watchDrawer } from "./drawer.js";
import { FeedbackButtons } from "./feedback.js";
import { follow } from "./follow.js";
import { KeptFiles } from "./kept_files.js";
import { isTyping } from "./keys.js";
import { translate } from "./messages.js";
import { ModeChoice, modeOf } from "./modes.js";
import { watchPane } from "./pane.js";
import { QuestionLength } from "./question_length.js";
import { keepPlace, restorePlace, toEnd, watchPlace } from "./scroll_position.js";
import { startResearch } from "./research_start.js";
import { offerSharing, watchSharing } from "./share.js";
import { Problem } from "./stream.js";
import { make, replaceControls } from "./text.js";
import { isSending, Thread } from "./thread.js";
import { awaitTitle } from "./titles.js";
import { hear } from "./turn.js";

const element = (id) => document.getElementById(id);
const box = element("q");
const drafts = new Drafts(element("chat").dataset.owner);
const modes = new ModeChoice(element("modes"), say);
const longest = Number(element("chat").dataset.longest);
const length = new QuestionLength(longest, say);
const editedLength = new QuestionLength(longest, say);
const others = new BroadcastChannel("quarry conversations");
/** Between two looks at an answer whose events the server does not have (any more). */
const LOOK_AGAIN = 1_000;

let conversation = null;
let messages = [];
/** The newest message of the conversation, as it was read last: of later ones the next reading tells. */
let known = null;
let opened = 0;
/** How often this page has asked something in the conversation: what was read before is out of date. */
let changes = 0;
const followed = new Map();

const list = new ConversationList({
  open: (id) => go(id),
  changed: (one) => {
    others.postMessage(one.id);
    if (one.id === conversation?.id) show(one, messages);
  },
  removed: (id) => {
    drafts.dropAll(id);
    others.postMessage(id);
    if (id === conversation?.id) go(null);
  },
  say,
});
const feedback = new FeedbackButtons(say);
const thread = new Thread(element("thread"), JSON.parse(element("chat").dataset.reasons), {
  edit: (message, text) => !editedLength.refuses(text) && ask(text, message.parent_id, choicesOf(message)),
  typed: (text) => editedLength.watch(text),
  draft: (message) => drafts.edited(conversation.id, message.id),
  search: searchIn,
  again,
  choose,
  answered: (...entry) => feedback.attach(...entry),
  say,
});
const assistant = new ChatAssistant({
  attempt,
  asked: (found) => modes.askOf(found),
  use: (id) => changeConversation(conversation.id, { assistant_id: id }).then((one) => show(one, messages)),
});
const closeDrawer = watchDrawer(element("conversations"), element("open-list"), element("close-list"), [
  element("room"),
  document.querySelector("header.top"),
]);

const idOf = (path) => decodeURIComponent(path.split("/")[2] ?? "") || null;
const running = () => messages.filter((message) => message.status === "running" && !message.withheld);

function say(text) {
  element("status").textContent = text;
}

/** Do what talks to the server; what went wrong is said. Returns whether it went well. */
async function attempt(act) {
  try {
    await act();
    return true;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // The session has ended: the page itself says what to do.
    if (error.status === 401) location.reload();
    say(replaceControls(error.sentence));
    if (error.status === 409) assistant.look();
    return false;
  }
}

function go(id) {
  closeDrawer();
  closePane();
  keepPlace();
  if (idOf(location.pathname) !== id) history.pushState(null, "", id ? `/chat/${encodeURIComponent(id)}` : "/chat");
  open();
}

/** Show the conversation that the address names, or the beginning of a new one. */
async function open() {
  const id = idOf(location.pathname);
  const mine = ++opened;
  keepDraft();
  element("missing").hidden = true;
  const isOther = id !== conversation?.id;
  if (isOther) leave();
  if (!id) {
    show(null, []);
    modes.recall();
  } else {
    list.mark(id);
    await attempt(async () => {
      const found = await readEnd(id, messages, known).catch((error) => missing(error, mine));
      if (mine !== opened || !found) return;
      shown(found);
      if (isOther) modes.follow(messages.findLast((message) => message.role === "user") ?? {});
      restorePlace();
    });
  }
  if (mine === opened) restoreDraft();
}

function leave() {
  for (const each of followed.values()) each.abort();
  followed.clear();
  conversation = null;
  messages = [];
  known = null;
  thread.show([]);
  say("");
}

function missing(error, mine) {
  if (!(error instanceof Problem) || error.status !== 404) throw error;
  if (mine !== opened) return;
  show(null, []);
  const link = make("a", { href: "/chat" }, translate("Begin a new conversation"));
  const sentence = translate("It was deleted, or it is not yours.");
  element("missing").replaceChildren(make("h2", {}, translate("There is no such conversation")), make("p", {}, sentence), make("p", {}, link));
  element("missing").hidden = false;
  element("opening").hidden = element("ask").hidden = true;
}

/** Take over the end of the path as the server has it; what was shown before it stays. */
function shown(found) {
  known = newestOf(found);
  const { messages: path, earlier } = joined(messages, element("earlier").dataset.before, found);
  show(found.conversation, path, earlier);
}

function show(one, path, earlier = element("earlier").dataset.before) {
  conversation = one;
  messages = path;
  const title = one ? replaceControls(one.title) : translate("New conversation");
  element("title").textContent = title;
  element("title").classList.toggle("unseen", !one);
  document.title = `${one ? title : translate("Chat")} · Quarry`;
  element("opening").hidden = Boolean(one);
  element("ask").hidden = false;
  assistant.show(one);
  showProject(one);
  element("earlier").hidden = !one || !earlier;
  element("earlier").dataset.before = (one && earlier) || "";
  offerSharing(one);
  feedback.open(one?.id ?? null);
  thread.show(path);
  list.mark(one?.id);
  for (const message of running()) if (!followed.has(message.id)) followAnswer(message);
  for (const [id, each] of followed) if (!path.some((message) => message.id === id)) drop(id, each);
  busy();
}

function drop(id, controller) {
  controller.abort();
  followed.delete(id);
}

function busy() {
  const is = running().length > 0;
  element("stop").hidden = !is;
  element("go").hidden = is;
}

/** Let the next question be asked before the answer is read once more. */
function settle(id, status) {
  messages = messages.map((message) => (message.id === id ? { ...message, status } : message));
  busy();
}

/** Read the conversation that is open once more, down from the message `wanted` if one is; again where more was asked in it meanwhile. */
async function refresh(wanted) {
  const { id } = conversation;
  const mine = opened;
  await attempt(async () => {
    let found, before;
    do {
      before = changes;
      found = await readEnd(id, messages, known, wanted);
      if (mine !== opened || conversation?.id !== id) return;
    } while (before !== changes);
    shown(found);
  });
}

async function followAnswer({ id }) {
  const mine = new AbortController();
  const url = eventsUrl(conversation.id, id);
  followed.set(id, mine);
  // A page that is hidden follows nothing; it may have read the whole answer before it goes on.
  const isOver = () => !running().some((message) => message.id === id);
  let ended = "";
  try {
    for await (const { name, data } of follow(url, mine.signal, sayLost)) {
      ended = name;
      if (name !== "error" && !isOver()) hear(thread.turn(id), name, data, say);
      if (name === "text" || name === "queries") busy();
    }
  } catch (error) {
    if (mine.signal.aborted) return;
    if (!(error instanceof Problem)) throw error;
    thread.turn(id).fail(error);
    return settle(id, "failed");
  }
  if (ended === "done" && isOver()) say("");
  else if (ended === "done") {
    thread.turn(id).end("done");
    thread.settle(id);
    settle(id, "finished");
    say(thread.turn(id).outcome);
  } else if (ended === "gone") await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
  if (mine.signal.aborted) return;
  followed.delete(id);
  list.load();
  await refresh();
  if (ended === "stopped") say(translate("Stopped"));
  if (ended === "done") await hearTitle();
}

/** The model names a conversation after its first answer. */
async function hearTitle() {
  if (!conversation || messages.length > 2 || !thread.turn(messages.at(-1).id)?.answer?.model) return;
  const named = await awaitTitle(conversation);
  if (!named) return;
  list.load();
  if (conversation?.id === named.id) show({ ...conversation, title: named.title, title_by: named.title_by }, messages);
}

function sayLost(isLost, why) {
  say(isLost ? replaceControls(why) || translate("Reconnecting…") : "");
}

/** Ask behind the answer `parent`; null begins a conversation anew, or its first question in another way. */
async function ask(question, parent, choices) {
  say(translate("Searching"));
  return attempt(async () => {
    const begun = conversation ? await postQuestion(conversation.id, question, parent, choices) : await beginConversation(question, { assistant_id: assistant.id, project_id: chosenProject(null), ...choices });
    const before = messages.slice(0, messages.findIndex((message) => message.id === parent) + 1);
    const one = begun.conversation ?? conversation;
    if (!conversation) {
      drafts.drop(null);
      history.pushState(null, "", `/chat/${encodeURIComponent(one.id)}`);
    }
    changed(one, [...before, begun.question, begun.answer]);
  });
}

/** What a question was asked with. */
function choicesOf({ files = [], filters, search_scope, ...message }) {
  return { files: files.map((file) => file.id), filters: filters ?? {}, search_scope: search_scope ?? "files", ...modeOf(message) };
}

/** Ask the question of an answer once more: in everything, or in its files only. */
function searchIn(answer, search_scope) {
  const question = messages.find((message) => message.id === answer.parent_id);
  return ask(question.text, question.parent_id, { ...choicesOf(question), search_scope });
}

/** Another answer to the same question. */
function again(answer) {
  say(translate("Searching"));
  return attempt(async () => {
    const begun = await regenerate(conversation.id, answer.id);
    const at = messages.findIndex((message) => message.id === answer.id);
    changed(conversation, [...messages.slice(0, at), begun.answer]);
  });
}

function changed(one, path) {
  changes += 1;
  show(one, path);
  toEnd();
  others.postMessage(one.id);
  list.load();
}

/** Show another version of a message, and what followed it. */
function choose(id, name) {
  return attempt(async () => {
    await changeConversation(conversation.id, { leaf_id: id });
    await refresh(id);
    others.postMessage(conversation.id);
    const chosen = element("thread").querySelector(`[data-message="${id}"]`);
    const button = chosen?.querySelector(`[data-part="${name}"]`);
    (button?.disabled ? chosen.querySelector(".versions button:enabled") : button)?.focus();
    const [at, all] = chosen?.querySelector('[data-part="place"]').textContent.split("/") ?? [];
    say(translate("Version {at} of {all}", { at, all }));
  });
}

function stop() {
  say(translate("Stopping"));
  return attempt(() => stopAnswers(conversation.id));
}

async function showEarlier() {
  const { id } = conversation;
  const height = document.documentElement.scrollHeight;
  await attempt(async () => {
    const found = await readConversation(id, { before: element("earlier").dataset.before });
    // Another path may be shown by now.
    if (conversation?.id !== id || found.messages.at(-1)?.id !== messages[0]?.parent_id) return;
    show(conversation, [...found.messages, ...messages], found.earlier ?? "");
    scrollBy(0, document.documentElement.scrollHeight - height);
  });
}

// The box.

function keepDraft() {
  if (box.dataset.of !== undefined) drafts.put(box.dataset.of || null, box.value);
}

function restoreDraft() {
  const id = conversation?.id ?? null;
  // What was typed before this script ran is kept.
  const typed = box.dataset.of === undefined ? box.value : "";
  box.dataset.of = id ?? "";
  box.value = typed || drafts.get(id);
  if (!isTyping(document.activeElement) && !element("conversations").contains(document.activeElement)) box.focus({ preventScroll: true });
}

/** The question goes back to where it was typed, unless research has begun with it. */
async function research(question) {
  if (attachments.ids.length) return say(translate("Research reads no attached files. Remove them, then ask."));
  const id = conversation?.id ?? null;
  const place = id ? { conversation_id: id } : { assistant_id: assistant.id, project_id: chosenProject(null) };
  box.value = "";
  if (await attempt(() => startResearch(question, { ...modes.body, ...place }))) drafts.drop(id);
  else box.value ||= question;
}

async function submit() {
  const question = box.value.trim();
  if (!question) return;
  if (running().length) return say(translate("An answer is being written. Wait for it, or stop it."));
  if (length.refuses(question)) return;
  if (attachments.objection) return say(attachments.objection);
  if (modes.isResearch) return research(question);
  box.value = "";
  const before = conversation?.id ?? null;
  if (await ask(question, messages.at(-1)?.id ?? null, { files: attachments.ids, ...modes.body })) {
    drafts.drop(before);
    attachments.clear();
  } else box.value ||= question;
  box.dataset.of = conversation?.id ?? "";
}

const attachments = new Attachments(element("ask"), element("files"), element("choose"), element("attach"), say, new KeptFiles(element("chat").dataset.owner));
element("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
box.addEventListener("input", () => {
  keepDraft();
  length.watch(box.value);
});
box.addEventListener("keydown", (event) => {
  if (isSending(event)) submit();
  else if (event.key === "ArrowUp" && !box.value) thread.editLast();
  else return;
  event.preventDefault();
});
element("stop").addEventListener("click", stop);
element("earlier").addEventListener("click", showEarlier);
element("new").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(null);
  box.focus();
});
for (const example of document.querySelectorAll("[data-try]")) {
  example.addEventListener("click", () => {
    box.value = example.dataset.try;
    submit();
  });
}

// Other tabs, and the keys of the whole page.

others.addEventListener("message", ({ data }) => {
  list.load();
  if (data === conversation?.id) refresh();
});
addEventListener("popstate", open);
addEventListener("pagehide", () => {
  keepPlace();
  for (const each of followed.values()) each.abort();
});
addEventListener("pageshow", (event) => event.persisted && location.reload());
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.altKey && event.code === "KeyN") {
    event.preventDefault();
    element("new").click();
  } else if (event.altKey && event.code === "KeyL") {
    event.preventDefault();
    if (element("open-list").checkVisibility()) element("open-list").click();
    element("find").focus();
  } else if (event.key === "Escape") {
    if (running().length && !element("conversations").contains(event.target)) stop();
    else if (!isTyping(event.target)) box.focus();
  }
});
watchSharing(() => ({ id: conversation.id, messages }));
watchPlace(element("thread"), () => running().length > 0);
const closeCard = watchCards(element("room"), element("card"), (chip) => thread.facts(chip));
const closePane = watchPane(element("chat"), closeCard);
open();
