// The editor of an assistant, with a try-out of what stands in it beside it.
import { translate } from "./messages.js";
import { Problem, send } from "./stream.js";
import { replaceControls } from "./text.js";
import { watchTryOut } from "./try_out.js";

const element = (id) => document.getElementById(id);
const form = element("assistant");
const id = form.dataset.id || null;
const isDefault = form.dataset.default === "yes";
const one = id ? `/api/assistants/${encodeURIComponent(id)}` : "/api/assistants";

const chosen = (name) => form.querySelector(`[name="${name}"]:checked`)?.value;
const boxes = (name) => [...form.querySelectorAll(`[name="${name}"]`)];
const checked = (name) => boxes(name).filter((box) => box.checked).map((box) => box.value);
const stored = (name) => boxes(name).filter((box) => box.defaultChecked).map((box) => box.value);
const lines = (name) => element(name).value.split("\n").map((line) => line.trim()).filter(Boolean);
const scopeNow = () => ({ sources: checked("source"), sets: checked("set") });

/** Whether its limits stay as they are stored: what the reader may not see of them stays in them, until others are chosen. */
function isScopeKept() {
  const before = { sources: stored("source"), sets: stored("set") };
  return element("scope").dataset.limited === "yes" && JSON.stringify(scopeNow()) === JSON.stringify(before);
}

/** What it is limited to. */
function scope() {
  if (chosen("scope") === "none") return { searches: false };
  if (chosen("scope") === "all") return { searches: true, sources: [], sets: [] };
  return { searches: true, ...(isScopeKept() ? {} : scopeNow()) };
}

function values() {
  const texts = { description: element("description").value, instructions: element("instructions").value, starters: lines("starters") };
  if (isDefault) return texts;
  const temperature = element("temperature").value;
  return {
    ...texts,
    ...scope(),
    // One that has no name yet can be tried.
    name: element("name").value.trim() || undefined,
    model: element("model").value || null,
    temperature: temperature === "" ? null : Number(temperature),
    searches_web: checked("searches_web").length > 0,
    allowed_domains: lines("allowed_domains"),
    blocked_domains: lines("blocked_domains"),
    ...(element("visibility") ? { visibility: chosen("visibility"), groups: checked("group") } : {}),
  };
}

/** What the person must choose first: to the server, nothing chosen is no limit. */
function lacking() {
  if (isDefault || chosen("scope") !== "some" || isScopeKept()) return "";
  const { sources, sets } = scopeNow();
  return sources.length || sets.length ? "" : translate("Choose a source or a document set, or let it search everything.");
}

function refuse(text) {
  element("refused").textContent = replaceControls(text);
  element("refused").hidden = !text;
  return Boolean(text);
}

async function attempt(act) {
  try {
    await act();
    location.assign("/assistants");
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    refuse(error.sentence);
  }
}

/** Boxes that mean nothing as the form stands cannot be reached. */
function enable() {
  if (isDefault) return;
  element("some").disabled = chosen("scope") !== "some";
  element("web").disabled = chosen("scope") === "none";
  for (const name of ["allowed_domains", "blocked_domains"]) element(name).disabled = !chosen("searches_web");
  if (element("groups")) element("groups").disabled = chosen("visibility") !== "groups";
}

form.addEventListener("change", enable);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!refuse(lacking())) attempt(() => send(id ? "PATCH" : "POST", one, values()));
});
element("remove")?.addEventListener("click", () => element("deleting").showModal());
element("deleting")?.addEventListener("close", () => {
  if (element("deleting").returnValue === "delete") attempt(() => send("DELETE", one));
});

watchTryOut(
  () => ({ assistant_id: id, assistant: values() }),
  () => !refuse(lacking()),
);
enable();
