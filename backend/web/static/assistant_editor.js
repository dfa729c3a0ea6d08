// The editor of an assistant, with a try-out of what stands in it beside it.
import { translate } from "./messages.js";
import { Problem, send } from "./stream.js";
import { replaceControls } from "./text.js";
import { watchTryOut } from "./try_out.js";

/** How a control is read: as it is now, or as the page was sent. */
const NOW = { text: (control) => control.value, isOn: (box) => box.checked };
const STORED = {
  text: (control) => control.defaultValue ?? control.querySelector("option[selected]")?.value ?? "",
  isOn: (box) => box.defaultChecked,
};

const element = (id) => document.getElementById(id);
const form = element("assistant");
const id = form.dataset.id || null;
const isDefault = form.dataset.default === "yes";
const one = id ? `/api/assistants/${encodeURIComponent(id)}` : "/api/assistants";
/** Whether the page is left on purpose, with what stands in it. */
let isLeaving = false;
let isUnderway = false;

const checked = (name, as = NOW) => [...form.querySelectorAll(`[name="${name}"]`)].filter(as.isOn).map((box) => box.value);
const chosen = (name, as = NOW) => checked(name, as)[0];
const lines = (name, as) => as.text(element(name)).split("\n").map((line) => line.trim()).filter(Boolean);
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const different = (now, before) => Object.fromEntries(Object.entries(now).filter(([name, value]) => !isSame(value, before[name])));
const boxesOfLimits = (as) => ({ sources: checked("source", as), sets: checked("set", as) });

/** What it is limited to, as far as that was changed; the server keeps what the reader may not see of it, unless all of it is dropped. */
function limits() {
  if (chosen("scope") === "none") return {};
  if (chosen("scope") === "some") return different(boxesOfLimits(NOW), boxesOfLimits(STORED));
  return element("scope").dataset.limited === "yes" ? { sources: [], sets: [] } : {};
}

/** All but what it is limited to. */
function values(as) {
  const texts = { description: as.text(element("description")), instructions: as.text(element("instructions")), starters: lines("starters", as) };
  if (isDefault) return texts;
  const temperature = as.text(element("temperature"));
  return {
    ...texts,
    // One that has no name yet can be tried.
    name: as.text(element("name")).trim() || undefined,
    searches: chosen("scope", as) !== "none",
    model: as.text(element("model")) || null,
    temperature: temperature === "" ? null : Number(temperature),
    searches_web: checked("searches_web", as).length > 0,
    allowed_domains: lines("allowed_domains", as),
    blocked_domains: lines("blocked_domains", as),
    ...(element("visibility") ? { visibility: chosen("visibility", as), groups: checked("group", as) } : {}),
  };
}

const all = () => ({ ...values(NOW), ...(isDefault ? {} : limits()) });
/** What was changed in the form, so that nothing is overwritten that others have changed since it was opened. */
const changes = () => ({ ...different(values(NOW), values(STORED)), ...(isDefault ? {} : limits()) });

/** What the person must choose first: to the server, nothing chosen is no limit. */
function lacking() {
  if (isDefault || chosen("scope") !== "some") return "";
  const isLimited = Object.values(boxesOfLimits(NOW)).some((names) => names.length);
  // What the reader may not see of its limits is one as well, as long as they change nothing of it.
  const isKept = element("scope").dataset.limited === "yes" && isSame(limits(), {});
  return isLimited || isKept ? "" : translate("Choose a source or a document set, or let it search everything.");
}

/** What has to be written before it is saved. */
const unnamed = () => (isDefault || element("name").value.trim() ? "" : translate("Give the assistant a name."));

function refuse(text) {
  element("refused").textContent = replaceControls(text);
  element("refused").hidden = !text;
  return Boolean(text);
}

/** Do what ends in another page, once: until that is shown, its button can still be clicked. */
async function attempt(act) {
  if (isUnderway) return;
  isUnderway = true;
  try {
    await act();
    isLeaving = true;
    location.assign("/assistants");
  } catch (error) {
    isUnderway = false;
    if (!(error instanceof Problem)) throw error;
    refuse(error.sentence);
  }
}

async function save() {
  if (!id) return send("POST", one, all());
  const changed = changes();
  return isSame(changed, {}) ? null : send("PATCH", one, changed);
}

/** Boxes that mean nothing as the form stands cannot be reached. */
function enable() {
  if (isDefault) return;
  for (const limit of element("some").querySelectorAll("fieldset")) limit.disabled = chosen("scope") !== "some";
  element("web").disabled = chosen("scope") === "none";
  for (const name of ["allowed_domains", "blocked_domains"]) element(name).disabled = !chosen("searches_web");
  if (element("groups")) element("groups").disabled = chosen("visibility") !== "groups";
}

form.addEventListener("change", enable);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!refuse(unnamed() || lacking())) attempt(save);
});
element("cancel").addEventListener("click", (event) => {
  isLeaving = !(event.ctrlKey || event.metaKey || event.shiftKey);
});
// A page that is shown again as it was left begins anew.
addEventListener("pageshow", () => (isLeaving = isUnderway = false));
addEventListener("beforeunload", (event) => {
  if (!isLeaving && !isSame(changes(), {})) event.preventDefault();
});
element("remove")?.addEventListener("click", () => element("deleting").showModal());
element("deleting")?.addEventListener("close", () => {
  if (element("deleting").returnValue === "delete") attempt(() => send("DELETE", one));
});

watchTryOut(
  () => ({ assistant_id: id, assistant: all() }),
  () => !refuse(lacking()),
);
enable();
