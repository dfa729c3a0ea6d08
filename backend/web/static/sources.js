// The pages of sources: add and edit sources, show their status, sync them, accept deletions, retry failures.
import { clearFaults, showFaults, valuesOf, watchFields } from "./fields.js";
import { translate } from "./messages.js";
import { joinSentences, translateSentence } from "./sentences.js";
import { Problem, send, stream } from "./stream.js";
import { replaceControls, make, parsed } from "./text.js";

const SOON = 1000;
const LATER = 20000;
const part = document.querySelector("[data-part]");
const status = document.getElementById("status");

/** The names of the sources whose syncs this page started. */
const syncing = new Set();
let refreshTimer = 0;
/**
 * Until this time (in ms since the epoch) an action of this page may still change a state: refresh often. So may what was
 * asked for on the page before this one.
 */
let changesUntil = Date.now() + LATER;
let shownHtml = "";
const SHOWN_MS = 12000;
let statusTimer = 0;

/** Show a status message for a while; with `stay` until the next one. */
function tell(text, stay) {
  clearTimeout(statusTimer);
  status.textContent = replaceControls(text);
  if (!stay) statusTimer = setTimeout(() => (status.textContent = ""), SHOWN_MS);
}

async function refresh() {
  clearTimeout(refreshTimer);
  const response = await fetch(part.dataset.part, { headers: { Accept: "text/html" } }).catch(() => null);
  if (response?.status === 404) return location.assign("/sources");
  // The session has ended: the page itself says what to do.
  if (response?.status === 401) return location.reload();
  const text = response?.ok ? await response.text() : shownHtml;
  if (text !== shownHtml) replace(text);
  shownHtml = text;
  scheduleRefresh();
}

function replace(text) {
  const focused = part.contains(document.activeElement) && document.activeElement.dataset.keep;
  part.replaceChildren(...parsed(text));
  if (focused) part.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const rows = () => [...document.querySelectorAll("[data-part] [data-source]")];
/** The name of the source that an element belongs to; outside the table, the page has only one source. */
const sourceName = (inside) => inside.closest("[data-source]")?.dataset.source ?? rows()[0]?.dataset.source;
const row = (name) => rows().find((each) => each.dataset.source === name);
const adminUrl = (name, rest = "") => `/api/admin/sources/${encodeURIComponent(name)}${rest}`;

/** Schedule the next refresh: soon during a run, later otherwise, never while the page is hidden. */
function scheduleRefresh() {
  clearTimeout(refreshTimer);
  if (document.hidden) return;
  const busy = rows().some((each) => /^(running|waiting|being removed)$/.test(each.dataset.state));
  refreshTimer = setTimeout(refresh, busy || syncing.size || Date.now() < changesUntil ? SOON : LATER);
}

async function sync(name) {
  if (syncing.has(name) || /^(running|waiting)$/.test(row(name)?.dataset.state)) return;
  syncing.add(name);
  row(name)?.querySelector("[data-sync]").setAttribute("disabled", "");
  tell(translate("Syncing {name}", { name }), true);
  scheduleRefresh();
  let error = "";
  try {
    for await (const event of stream(`/api/sources/${encodeURIComponent(name)}/sync`, {})) {
      if (event.name === "error") throw new Problem(event.data);
      else if (event.name === "done") error = translateSentence(event.data.error ?? "");
    }
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    // Another process syncs it already: the next refresh shows its progress.
    error = problem.status === 409 ? "" : problem.sentence;
  } finally {
    syncing.delete(name);
  }
  await refresh();
  const state = row(name)?.querySelector(".state").textContent;
  tell(error ? translate("{name} could not be synced", { name }) : translate("{name}: {state}", { name, state }));
  if (error && !row(name)?.querySelector(".decision")) showError(name, error);
}

function showError(name, error) {
  const at = row(name);
  if (!at) return;
  const same = [...at.querySelectorAll(".notice")].some((each) => each.textContent.trim() === replaceControls(error));
  if (!same) at.append(make("p", { class: "notice trouble", role: "alert" }, replaceControls(error)));
}

/** Send a request, announce its result, and refresh. */
async function runAction(name, method, url, body) {
  try {
    tell(translateSentence((await send(method, url, body)).told));
    changesUntil = Date.now() + LATER;
    await refresh();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    showError(name, problem.sentence);
  }
}

/** Try the connection and show what came of it, after `before`. */
async function test(name, button, before = "") {
  const section = document.getElementById("test-results");
  const list = section.querySelector("ul");
  section.hidden = false;
  button.disabled = true;
  list.replaceChildren(make("li", { class: "dim" }, translate("Testing…")));
  let fault = "";
  try {
    const found = await send("POST", adminUrl(name, "/test"));
    list.replaceChildren(...found.map(toResultItem));
    const content = found.find((one) => one.capability === "content");
    fault = content?.works ? "" : translateSentence(content?.fault ?? "");
    const said = fault ? translate("{name} cannot be read: {fault}", { name, fault }) : translate("The connection works.");
    tell(joinSentences(before, said));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    list.replaceChildren(make("li", { class: "fault" }, replaceControls(problem.sentence)));
  }
  button.disabled = false;
  section.scrollIntoView({ block: "nearest" });
}

const CAPABILITIES = {
  content: translate("Content"),
  listing: translate("Listing of all documents"),
  access: translate("Permissions"),
};

const toResultItem = ({ capability, works, supported, fault }) =>
  make(
    "li",
    {},
    make("span", { class: works ? "state done" : supported ? "state failed" : "state" }, works ? translate("works") : supported ? translate("missing") : translate("none")),
    make("span", { class: "item" }, CAPABILITIES[capability] ?? capability),
    fault ? make("p", { class: "reason" }, replaceControls(translateSentence(fault))) : null,
  );

part.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const name = sourceName(button);
  if ("sync" in button.dataset) sync(name);
  else if ("test" in button.dataset) test(name, button);
  else if ("action" in button.dataset) runAction(name, "POST", adminUrl(name, `/${button.dataset.action}`));
  else if ("retry" in button.dataset) {
    const { retry } = button.dataset;
    runAction(name, "POST", adminUrl(name, "/retry"), retry ? { documents: [retry] } : {});
  }
});

const form = document.querySelector("form.connect");
const refused = document.getElementById("refused");

async function submitForm() {
  const { kind, edits } = form.dataset;
  const { name, settings = {}, credential } = valuesOf(form);
  const body = { settings, ...(credential ? { credential } : {}) };
  if (edits) {
    const { notice } = await send("PATCH", adminUrl(edits), body);
    for (const secret of form.querySelectorAll('[type="password"]')) secret.value = "";
    for (const shut of form.querySelectorAll("[data-credential]")) shut.open = false;
    await refresh();
    confirmSaved(form);
    tell(joinSentences(translate("Saved."), translate("Trying the connection…")), true);
    changesUntil = Date.now() + LATER;
    await test(edits, part.querySelector("[data-test]"), joinSentences(translate("Saved."), translateSentence(notice)));
    await refresh();
  } else {
    const added = await send("POST", "/api/admin/sources", { kind, ...(name ? { name } : {}), ...body });
    form.reset();
    await refresh();
    row(added.name)?.scrollIntoView({ block: "nearest" });
    sync(added.name);
  }
}

const buttonLabels = new Map();

/** Show "Saved" on the button of a form for a moment. */
function confirmSaved(saved) {
  const button = saved.querySelector("button.strong");
  if (!buttonLabels.has(button)) buttonLabels.set(button, button.textContent);
  button.textContent = translate("Saved");
  setTimeout(() => (button.textContent = buttonLabels.get(button)), 2000);
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  refused.hidden = true;
  clearFaults(form);
  try {
    await submitForm();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const others = problem.errors?.length ? showFaults(form, problem.errors) : [problem.sentence];
    refused.textContent = replaceControls(joinSentences(...others));
    refused.hidden = !others.length;
    tell(translate("The settings were not saved"));
  }
});
if (form) watchFields(form);

const schedule = document.getElementById("schedule");
schedule?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const every = [...new FormData(schedule)].map(([kind, seconds]) => [kind, Number(seconds)]);
  await runAction(sourceName(schedule), "PUT", adminUrl(sourceName(schedule), "/schedule"), Object.fromEntries(every));
  confirmSaved(schedule);
});

const owner = document.getElementById("owner");
owner?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const trouble = owner.querySelector("[role=alert]");
  trouble.hidden = true;
  try {
    await send("PUT", adminUrl(sourceName(owner), "/owner"), { email: owner.elements.email.value.trim() || null });
    await refresh();
    confirmSaved(owner);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    trouble.textContent = replaceControls(problem.sentence);
    trouble.hidden = false;
  }
});

const removing = document.getElementById("removing");
document.getElementById("remove")?.addEventListener("click", () => removing.showModal());
removing?.addEventListener("close", () => {
  const name = removing.dataset.source;
  if (removing.returnValue === "remove") runAction(name, "DELETE", adminUrl(name));
});

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(refreshTimer) : refresh()));
scheduleRefresh();
