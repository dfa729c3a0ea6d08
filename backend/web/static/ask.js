// Ask: what is being done, the answer as it comes, and what it stands on.
import { watchCards } from "./cards.js";
import { copied } from "./copying.js";
import { isTyping } from "./keys.js";
import { keep, kept } from "./answer_cache.js";
import { translate } from "./messages.js";
import { ModeChoice } from "./modes.js";
import { Problem, stream } from "./stream.js";
import { replaceControls } from "./text.js";
import { Turn, hear } from "./turn.js";

const element = (id) => document.getElementById(id);
const form = element("ask");
const box = element("q");
const filters = JSON.parse(form.dataset.filters);
const modes = new ModeChoice(element("modes"), say);

let turn = null;
let underway = null;

async function ask(question) {
  underway?.abort();
  const mine = (underway = new AbortController());
  turn = turnOf(question);
  busy(true);
  say(translate("Searching"));
  try {
    for await (const { name, data } of stream("/api/ask", { question, filters, ...modes.body }, mine.signal)) {
      if (mine.signal.aborted) return;
      hear(turn, name, data, say);
    }
    if (!turn.answer) throw new Problem({ title: translate("The answer ended before it was complete"), advice: translate("Ask again.") });
    turn.end("done");
    keep(turn.kept);
    say(turn.outcome);
  } catch (error) {
    if (mine === underway) broken(error, mine.signal.aborted);
  } finally {
    if (mine === underway) busy(false);
  }
}

function turnOf(question) {
  element("opening").hidden = true;
  element("turn").hidden = false;
  element("asked").textContent = replaceControls(question);
  return new Turn(element("turn"), question);
}

/** What came so far stays, if it may still be read; beside it stands what happened, and what to do. */
function broken(error, stopped) {
  if (stopped) {
    turn.end("stopped", translate("Stopped"));
    say(translate("Stopped"));
    return;
  }
  if (!(error instanceof Problem)) throw error;
  turn.fail(error);
}

function stop() {
  underway?.abort();
}

function busy(is) {
  element("stop").hidden = !is;
  element("go").hidden = is;
  if (!is && document.activeElement === document.body) box.focus({ preventScroll: true });
}

function say(text) {
  element("status").textContent = text;
}

/** What the address says behind its path: this question, under the filters that are chosen. */
function searchOf(question) {
  const parameters = new URLSearchParams(location.search);
  parameters.set("q", question);
  return `?${parameters}`;
}

function begin(question) {
  history.pushState(null, "", `/ask${searchOf(question)}`);
  open();
}

/** What the address asks: the answer that was given to it before, or a new one. */
function open() {
  const question = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  box.value = question;
  document.title = [question, translate("Ask Quarry")].filter(Boolean).join(" · ");
  element("look").href = `/${searchOf(question)}`;
  for (const chip of document.querySelectorAll("[data-chip]")) {
    const target = new URL(chip.href);
    target.searchParams.set("q", question);
    chip.href = target;
  }
  const before = kept();
  if (before?.question === question && before.answer) {
    underway?.abort();
    underway = null;
    turn = turnOf(question);
    turn.restore(before);
    busy(false);
  } else if (question) ask(question);
  else {
    stop();
    element("turn").hidden = true;
    element("opening").hidden = false;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (box.value.trim()) begin(box.value.trim());
});
element("stop").addEventListener("click", stop);
element("again").addEventListener("click", () => ask(turn.question));
element("copy").addEventListener("click", async () => say(await copied(turn, element("copy"))));
addEventListener("popstate", open);
addEventListener("pagehide", stop);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  if (!element("stop").hidden) stop();
  else if (!isTyping(event.target)) box.focus();
});
watchCards(element("turn"), element("card"), (chip) => turn?.facts(chip));
open();
if (!box.value) box.focus();
