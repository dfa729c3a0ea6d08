// A conversation that somebody shares: to be read, and to be copied into one's own.
import { watchCards } from "./cards.js";
import { copied } from "./copying.js";
import { translate } from "./messages.js";
import { watchPane } from "./pane.js";
import { Problem, send } from "./stream.js";
import { make, replaceControls } from "./text.js";
import { made, part, restorable, restorePart } from "./thread.js";
import { Turn } from "./turn.js";

const element = (id) => document.getElementById(id);
const page = element("shared");
const address = `/api/shared/${encodeURIComponent(page.dataset.share)}`;
const reasons = JSON.parse(page.dataset.reasons);
const turns = new Map();

const say = (text) => (element("status").textContent = text);

function question({ text }) {
  const node = made("question");
  part(node, "text").textContent = replaceControls(text);
  return node;
}

function answer(message, asked) {
  const node = made("answer");
  const turn = new Turn(node, asked);
  // A notice is of an answer that is withheld, or not complete.
  if (message.answer && !message.notice) turn.restore(restorable(message, reasons));
  else restorePart(turn, message);
  message.losses.forEach((loss) => turn.lost(loss));
  part(node, "copy").addEventListener("click", async () => say(await copied(turn, part(node, "copy"))));
  turns.set(node, turn);
  return node;
}

function show({ title, messages, has_earlier }) {
  element("title").textContent = replaceControls(title);
  document.title = `${replaceControls(title)} · Quarry`;
  let asked = "";
  const nodes = messages.map((message) => {
    if (message.role === "assistant") return answer(message, asked);
    asked = message.text;
    return question(message);
  });
  element("thread").replaceChildren(...nodes);
  element("download").href = `${address}/export`;
  element("what").hidden = element("end").hidden = false;
  element("earlier").hidden = !has_earlier;
}

function missing(problem) {
  const link = make("a", { href: "/chat" }, translate("Go to your conversations"));
  const [first, ...rest] = [problem.detail || problem.title, problem.advice].filter(Boolean);
  const said = rest.map((text) => make("p", {}, replaceControls(text)));
  element("missing").replaceChildren(make("h2", {}, replaceControls(first)), ...said, make("p", {}, link));
  element("missing").hidden = false;
}

async function attempt(act, failed) {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // The session has ended: the page itself says what to do.
    if (error.status === 401) location.reload();
    failed(error);
  }
}

element("copy").addEventListener("click", () =>
  attempt(
    async () => {
      const { id } = await send("POST", `${address}/copy`);
      location.assign(`/chat/${encodeURIComponent(id)}`);
    },
    (problem) => say(replaceControls(problem.sentence)),
  ),
);
addEventListener("pageshow", (event) => event.persisted && location.reload());
const closeCard = watchCards(element("room"), element("card"), (chip) => turns.get(chip.closest(".message"))?.facts(chip));
watchPane(page, closeCard);
attempt(async () => show(await send("GET", address)), missing);
