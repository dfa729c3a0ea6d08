// Sources: add one, see how they stand, bring them in step, decide, try again.
import { clearFaults, showFaults, valuesOf, watchFields } from "./fields.js";
import { Problem, send, stream } from "./stream.js";
import { counted, replaceControls, make, parsed } from "./text.js";

const SOON = 2000;
const LATER = 20000;
const part = document.querySelector("[data-part]");
const status = document.getElementById("status");

/** What this page syncs, by the names of the sources. */
const underway = new Map();
let looking = 0;
/** Until when something may begin that was asked for here, in milliseconds of the clock. */
let expecting = 0;
let shown = "";

async function refresh() {
  clearTimeout(looking);
  const response = await fetch(part.dataset.part, { headers: { Accept: "text/html" } }).catch(() => null);
  if (response?.status === 404) return location.assign("/sources");
  const text = response?.ok ? await response.text() : shown;
  if (text !== shown) replace(text);
  shown = text;
  for (const name of underway.keys()) draw(name);
  watch();
}

function replace(text) {
  const kept = part.contains(document.activeElement) && document.activeElement.dataset.keep;
  part.replaceChildren(...parsed(text));
  if (kept) part.querySelector(`[data-keep="${CSS.escape(kept)}"]`)?.focus({ preventScroll: true });
}

const rows = () => [...document.querySelectorAll("[data-part] [data-source]")];
/** The source that something on the page is of; beside the table there is but one. */
const named = (inside) => inside.closest("[data-source]")?.dataset.source ?? rows()[0]?.dataset.source;
const row = (name) => rows().find((each) => each.dataset.source === name);
const admin = (name, rest = "") => `/api/admin/sources/${encodeURIComponent(name)}${rest}`;

/** Look again: soon while something goes on, now and then otherwise, and not at all while nobody sees it. */
function watch() {
  clearTimeout(looking);
  if (document.hidden) return;
  const busy = rows().some((each) => /^(running|waiting|being removed)$/.test(each.dataset.state));
  looking = setTimeout(refresh, busy || underway.size || Date.now() < expecting ? SOON : LATER);
}

async function sync(name) {
  if (underway.has(name) || /^(running|waiting)$/.test(row(name)?.dataset.state)) return;
  underway.set(name, { stage: "starting", done: 0, total: null, item: "", rate: 0 });
  draw(name);
  status.textContent = `Syncing ${name}`;
  let error = "";
  try {
    for await (const event of stream(`/api/sources/${encodeURIComponent(name)}/sync`, {})) {
      if (event.name === "progress") progressed(name, event.data);
      else if (event.name === "error") throw new Problem(event.data);
      else if (event.name === "done") error = event.data.error ?? "";
    }
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    // Another process is at it already: how far it is shows in a moment.
    error = problem.status === 409 ? "" : problem.sentence;
  } finally {
    underway.delete(name);
  }
  await refresh();
  status.textContent = error ? `${name} could not be synced` : `${name}: ${row(name)?.querySelector(".state").textContent}`;
  if (error) complain(name, error);
}

function progressed(name, progress) {
  underway.set(name, progress);
  draw(name);
}

function draw(name) {
  const shownRow = row(name);
  if (!shownRow) return;
  const { stage, done, total, item, rate } = underway.get(name);
  const bar = shownRow.querySelector("progress");
  shownRow.querySelector(".progress").hidden = false;
  shownRow.querySelector(".notice.trouble")?.remove();
  shownRow.querySelector("[data-sync]").disabled = true;
  Object.assign(shownRow.querySelector(".state"), { textContent: "syncing", className: "state running" });
  if (total) Object.assign(bar, { max: total, value: done });
  else bar.removeAttribute("value");
  const counts = done ? `${counted(done, "document")}${total ? ` of ${total}` : ""}, ${rate.toFixed(0)} a second` : "";
  shownRow.querySelector(".doing").textContent = [stage, counts, replaceControls(item)].filter(Boolean).join(" · ");
}

function complain(name, error) {
  const at = row(name);
  if (!at) return;
  const same = [...at.querySelectorAll(".notice")].some((each) => each.textContent.trim() === replaceControls(error));
  if (!same) at.append(make("p", { class: "notice trouble", role: "alert" }, replaceControls(error)));
}

/** Ask for something, say what was done, and look what has become of it. */
async function ask(name, method, url, body) {
  try {
    status.textContent = (await send(method, url, body)).told;
    expecting = Date.now() + LATER;
    await refresh();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    complain(name, problem.sentence);
  }
}

async function test(name, button) {
  const section = document.getElementById("tried");
  const list = section.querySelector("ul");
  section.hidden = false;
  button.disabled = true;
  list.replaceChildren(make("li", { class: "dim" }, "Trying…"));
  try {
    list.replaceChildren(...(await send("POST", admin(name, "/test"))).map(line));
    status.textContent = `${name} was tried`;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    list.replaceChildren(make("li", { class: "fault" }, replaceControls(problem.sentence)));
  }
  button.disabled = false;
  section.scrollIntoView({ block: "nearest" });
}

const CAPABILITIES = { content: "Content", listing: "Listing of all documents", access: "Permissions" };

const line = ({ capability, works, fault }) =>
  make(
    "li",
    {},
    make("span", { class: works ? "state done" : "state failed" }, works ? "works" : "missing"),
    make("span", { class: "item" }, CAPABILITIES[capability] ?? capability),
    fault ? make("p", { class: "reason" }, replaceControls(fault)) : null,
  );

part.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const name = named(button);
  if ("sync" in button.dataset) sync(name);
  else if ("test" in button.dataset) test(name, button);
  else if ("word" in button.dataset) ask(name, "POST", admin(name, `/${button.dataset.word}`));
  else if ("retry" in button.dataset) {
    const { retry } = button.dataset;
    ask(name, "POST", admin(name, "/retry"), retry ? { documents: [retry] } : {});
  }
});

const form = document.querySelector("form.connect");
const refused = document.getElementById("refused");

async function submitted() {
  const { kind, edits } = form.dataset;
  const { name, settings = {}, credential } = valuesOf(form);
  const body = { settings, ...(credential ? { credential } : {}) };
  if (edits) {
    await send("PATCH", admin(edits), body);
    for (const secret of form.querySelectorAll('[type="password"]')) secret.value = "";
    for (const shut of form.querySelectorAll("[data-credential]")) shut.open = false;
    await refresh();
    status.textContent = `The settings of ${edits} are saved`;
    confirm(form);
  } else {
    const added = await send("POST", "/api/admin/sources", { kind, ...(name ? { name } : {}), ...body });
    form.reset();
    await refresh();
    row(added.name)?.scrollIntoView({ block: "nearest" });
    sync(added.name);
  }
}

const shownOn = new Map();

/** Its button says so for a moment. */
function confirm(saved) {
  const button = saved.querySelector("button.strong");
  if (!shownOn.has(button)) shownOn.set(button, button.textContent);
  button.textContent = "Saved";
  setTimeout(() => (button.textContent = shownOn.get(button)), 2000);
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  refused.hidden = true;
  clearFaults(form);
  try {
    await submitted();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const others = problem.errors?.length ? showFaults(form, problem.errors) : [problem.sentence];
    refused.textContent = replaceControls(others.join(" "));
    refused.hidden = !others.length;
    status.textContent = "It was not saved";
  }
});
if (form) watchFields(form);

const schedule = document.getElementById("schedule");
schedule?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const every = [...new FormData(schedule)].map(([kind, seconds]) => [kind, Number(seconds)]);
  await ask(named(schedule), "PUT", admin(named(schedule), "/schedule"), Object.fromEntries(every));
  confirm(schedule);
});

const removing = document.getElementById("removing");
document.getElementById("remove")?.addEventListener("click", () => removing.showModal());
removing?.addEventListener("close", () => {
  const name = removing.dataset.source;
  if (removing.returnValue === "remove") ask(name, "DELETE", admin(name));
});

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(looking) : refresh()));
watch();
