// The page of a research run: its tasks, its sources and its report as they come; what has come to stay, the server renders.
import { localizeChips, offerCopies } from "./answer_nodes.js";
import { watchCards } from "./cards.js";
import { entry } from "./cited.js";
import { follow } from "./follow.js";
import { Live } from "./live.js";
import { translate } from "./messages.js";
import { TaskTree } from "./research_tasks.js";
import { Problem } from "./stream.js";
import { make, parsed, replaceControls } from "./text.js";

const SOON = 150;
/** A task is stored just behind its event. */
const LATER = 2_000;
const element = (id) => document.getElementById(id);
const page = element("research");
const state = element("state");
const address = `/research/${encodeURIComponent(page.dataset.id)}`;
const tree = new TaskTree();
const found = new Map();
let live = null;
let timers = [];
let shown = "";

const HEARD = {
  clarification: renew,
  plan: renew,
  state: renew,
  round: renew,
  resumed: () => say(translate("It continues after the last completed task.")),
  task_started: ({ task }) => (tree.begin(task.number), renew()),
  earlier_findings: ({ task, findings }) => (tree.addFindings(task, findings), tree.draw(state)),
  action_started: (action) => (tree.start(action), tree.draw(state)),
  action_done: (action) => tree.finish(action),
  source: ({ source }) => addSource(source),
  task_done: ({ task }) => (tree.end(task.number), renew()),
  reports_withdrawn: withdraw,
  report_started: () => (write(), say(translate("The report is written and its citations are checked"))),
  text: ({ text }) => (live ?? write()).add(text),
  withheld: renew,
};

function say(text) {
  element("status").textContent = text;
}

function write() {
  element("text").replaceChildren();
  element("live").hidden = false;
  element("written").hidden = false;
  live = new Live(element("text"), (number) => `[${number}]`);
  return live;
}

function addSource(source) {
  if (found.has(source.document_id)) return;
  const { number, url, date, ...rest } = source;
  const item = entry({ ...rest, link: url, updated_at: date });
  found.set(source.document_id, item);
  element("live").hidden = false;
  element("found").hidden = false;
  element("found").querySelector("ol").prepend(item);
}

/** What rested on documents that may not be read any more is gone, also what was seen of it. */
function withdraw({ tasks }) {
  for (const number of tasks) tree.forget(number);
  found.clear();
  element("found").querySelector("ol").replaceChildren();
  renew();
}

/** Ask the server for the state soon, and once more for what is stored a little later. */
function renew() {
  for (const timer of timers) clearTimeout(timer);
  timers = [setTimeout(refresh, SOON), setTimeout(refresh, LATER)];
}

async function refresh() {
  const response = await fetch(`${address}/state`, { headers: { Accept: "text/html" } }).catch(() => null);
  if (response?.status === 401) return location.reload();
  if (response?.status === 404) return location.assign("/research");
  if (response?.ok) replace(await response.text());
}

/** What did not change stays as it is: focus, and the heading that was jumped to, would be lost. */
function replace(html) {
  if (html === shown) return;
  const focused = state.contains(document.activeElement) ? document.activeElement.closest("[data-keep]")?.dataset.keep : null;
  const open = [...state.querySelectorAll("details[open]")].map((one) => one.dataset.keep);
  // What somebody is writing is theirs until they send it.
  if (state.contains(document.activeElement) && document.activeElement.matches("textarea")) return;
  shown = html;
  state.replaceChildren(...parsed(html));
  for (const details of state.querySelectorAll("details")) details.open = open.includes(details.dataset.keep);
  const kept = focused && state.querySelector(`[data-keep="${CSS.escape(focused)}"]`);
  (kept?.matches("details") ? kept.querySelector("summary") : kept)?.focus({ preventScroll: true });
  prepare();
}

function prepare() {
  tree.draw(state);
  localizeChips(state);
  offerCopies(state);
  offerTasks();
}

/** One more line of the plan, as the last one is. */
function offerTasks() {
  const plan = element("plan");
  if (!plan) return;
  const lines = plan.querySelector("ol");
  const button = element("add-task");
  const isFull = () => lines.children.length >= Number(plan.dataset.most);
  button.hidden = isFull();
  button.onclick = () => {
    lines.append(newTask(lines.children.length + 1));
    lines.lastElementChild.querySelector("textarea").focus();
    button.hidden = isFull();
  };
}

function newTask(number) {
  const check = make("input", { type: "checkbox", name: `keep-${number}`, checked: true, "aria-label": translate("Work on task {number}", { number }) });
  const text = make("textarea", { name: `task-${number}`, rows: 2, dir: "auto", placeholder: translate("Another task"), "aria-label": translate("Task {number}", { number }) });
  return make("li", {}, check, text);
}

function describe(chip) {
  const cards = JSON.parse(chip.closest("[data-citations]")?.dataset.citations ?? "[]");
  return cards[chip.dataset.at] ?? null;
}

async function followRun() {
  const url = `/api/research/${encodeURIComponent(page.dataset.id)}/events`;
  const lost = (isLost, why) => say(isLost ? why || translate("The connection was lost. Reconnecting.") : "");
  for await (const { name, data } of follow(url, new AbortController().signal, lost)) HEARD[name]?.(data);
}

/** The report that stays takes the place of the one that was being written. */
async function end() {
  for (const timer of timers) clearTimeout(timer);
  await refresh();
  element("live").hidden = true;
  const isDone = state.querySelector("#report-title");
  say(isDone ? translate("The report is complete.") : translate("It has ended."));
}

async function run() {
  try {
    await followRun();
    await end();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    say(replaceControls(error.sentence));
    await refresh();
  }
}

watchCards(page, element("card"), describe);
prepare();
if (!("ended" in page.dataset)) run();
