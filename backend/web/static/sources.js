// Sources: add a folder, bring one in step, see how far that is.
import { post, Problem, stream } from "./stream.js";
import { counted, harmless, parsed } from "./text.js";

const LOOK_AGAIN = 2000;
const table = document.getElementById("table");
const told = document.getElementById("told");
const form = document.getElementById("add");
const refused = document.getElementById("refused");

/** What is being done, by the names of the sources. */
const underway = new Map();
let looking = 0;

async function refresh() {
  const response = await fetch("/sources/table", { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const focused = table.contains(document.activeElement) && named(document.activeElement);
  table.replaceChildren(...parsed(await response.text()));
  for (const name of underway.keys()) draw(name);
  if (focused) row(focused)?.querySelector("[data-sync]").focus();
  watch();
}

const named = (inside) => inside.closest("[data-source]")?.dataset.source;
const row = (name) => [...table.querySelectorAll("[data-source]")].find((each) => each.dataset.source === name);

/** A run that another page or program began is looked at again until it is done. */
function watch() {
  clearTimeout(looking);
  const others = [...table.querySelectorAll('[data-state="running"]')].some((each) => !underway.has(named(each)));
  if (others) looking = setTimeout(refresh, LOOK_AGAIN);
}

async function sync(name) {
  if (underway.has(name)) return;
  underway.set(name, { stage: "starting", done: 0, total: null, item: "", rate: 0 });
  draw(name);
  told.textContent = `Syncing ${name}`;
  let error = "";
  try {
    for await (const event of stream(`/api/sources/${encodeURIComponent(name)}/sync`, {})) {
      if (event.name === "progress") progressed(name, event.data);
      else if (event.name === "error") throw new Problem(event.data);
      else if (event.name === "done") error = event.data.error ?? "";
    }
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    error = [problem.title, problem.detail, problem.advice].filter(Boolean).join(". ");
  } finally {
    underway.delete(name);
  }
  await refresh();
  told.textContent = error ? `${name} could not be synced` : `${name} is in step`;
  if (error) complain(name, error);
}

function progressed(name, progress) {
  underway.set(name, progress);
  draw(name);
}

function draw(name) {
  const shown = row(name);
  if (!shown) return;
  const { stage, done, total, item, rate } = underway.get(name);
  const bar = shown.querySelector("progress");
  shown.querySelector(".progress").hidden = false;
  shown.querySelector(".notice")?.remove();
  shown.querySelector("[data-sync]").disabled = true;
  Object.assign(shown.querySelector(".state"), { textContent: "syncing", className: "state running" });
  if (total) Object.assign(bar, { max: total, value: done });
  else bar.removeAttribute("value");
  const counts = done ? `${counted(done, "document")}${total ? ` of ${total}` : ""}, ${rate.toFixed(0)} a second` : "";
  shown.querySelector(".doing").textContent = [stage, counts, harmless(item)].filter(Boolean).join(" · ");
}

function complain(name, error) {
  const shown = row(name);
  if (!shown || shown.querySelector(".notice")) return;
  const notice = document.createElement("p");
  notice.className = "notice trouble";
  notice.setAttribute("role", "alert");
  notice.textContent = harmless(error);
  shown.append(notice);
}

table.addEventListener("click", (event) => {
  if (event.target.closest("[data-sync]")) sync(named(event.target));
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { path, name } = Object.fromEntries(new FormData(form));
  refused.hidden = true;
  try {
    const added = await post("/api/sources", {
      kind: "folder",
      ...(name.trim() ? { name: name.trim() } : {}),
      settings: { path: path.trim() },
    });
    form.reset();
    await refresh();
    sync(added.name);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    refused.textContent = harmless([problem.detail || problem.title, problem.advice].filter(Boolean).join(" "));
    refused.hidden = false;
    form.elements.path.focus();
  }
});

watch();
