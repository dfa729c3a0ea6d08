// Search as you type. The address is the state: what it says is what is shown.
import { isTyping } from "./keys.js";
import { translate } from "./messages.js";
import { make, parsed } from "./text.js";

const PAUSE = 120;
/** After so many quiet milliseconds what is typed next is a search of its own, for Back. */
const SETTLED = 2500;

const form = document.getElementById("search");
const box = document.getElementById("q");
const region = document.getElementById("results");
const status = document.getElementById("status");
const wide = matchMedia("(min-width: 60.01rem)");

let latest = 0;
let shown = 0;
let underway = null;
let pause = 0;
let rest = 0;
let settled = true;

/** Ask for the results of an address and put them in place, unless newer ones are there. */
async function show(search) {
  const number = ++latest;
  underway?.abort();
  underway = new AbortController();
  region.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(`/results${search}`, {
      signal: underway.signal,
      headers: { Accept: "text/html" },
    });
    // The session has ended: the page itself says what to do.
    if (response.status === 401) return location.reload();
    const html = await response.text();
    if (number < shown) return;
    shown = number;
    if (response.status === 503)
      retryAfter(Number(response.headers.get("Retry-After")) || 1, search, number);
    else if (response.headers.get("content-type")?.includes("json")) lost(search);
    else put(parsed(html));
  } catch (error) {
    if (error.name !== "AbortError" && number === latest) lost(search);
  }
}

function put(nodes) {
  const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
  const wasOpen = region.querySelector(".all")?.open;
  const unfolded = [...region.querySelectorAll(".all details[id][open]")].map((list) => list.id);
  region.replaceChildren(...nodes);
  region.removeAttribute("aria-busy");
  openFilters(wasOpen);
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (focused) (document.getElementById(focused) ?? box).focus();
  status.textContent = region.querySelector("[data-status]")?.dataset.status ?? "";
  document.title = box.value.trim() ? `${box.value.trim()} · Quarry` : "Quarry";
}

function openFilters(wasOpen) {
  const filters = region.querySelector(".all");
  if (filters) filters.open = wide.matches || Boolean(wasOpen);
}

function lost(search) {
  const again = make("button", { type: "button" }, translate("Try again"));
  again.addEventListener("click", () => show(search));
  const notice = make(
    "div",
    { class: "notice trouble", role: "alert", "data-status": "" },
    make("h2", {}, translate("Quarry does not answer")),
    make("p", {}, translate("Check your network, then try again. If that does not help, tell whoever runs Quarry.")),
    make("p", {}, again),
  );
  put([make("section", { class: "found", "aria-label": translate("Results") }, notice)]);
}

function retryAfter(seconds, search, number) {
  const notice = make("div", { class: "notice", "data-status": translate("Quarry is starting or busy.") });
  notice.append(make("p", {}, translate("Quarry is starting or busy. The search runs as soon as it can.")));
  put([make("section", { class: "found", "aria-label": translate("Results") }, notice)]);
  setTimeout(() => number === latest && show(search), seconds * 1000);
}

/** The address with another question; what it was narrowed by stays. */
function addressOf(text) {
  const parameters = new URLSearchParams(location.search);
  parameters.delete("limit");
  if (text) parameters.set("q", text);
  else parameters.delete("q");
  const query = parameters.toString();
  return query ? `?${query}` : "";
}

/** The first letter after a rest makes an entry of the history, the following ones change it. */
function typed() {
  const search = addressOf(box.value.trim());
  if (search === location.search) return;
  history[settled ? "pushState" : "replaceState"](null, "", `/${search}`);
  settled = false;
  clearTimeout(rest);
  rest = setTimeout(settle, SETTLED);
  show(search);
}

function settle() {
  settled = true;
}

function go(url) {
  settle();
  history.pushState(null, "", url.pathname + url.search);
  box.value = url.searchParams.get("q") ?? "";
  show(url.search);
}

box.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(typed, PAUSE);
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  typed();
  settle();
});

region.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-soft]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(new URL(link.href));
});

addEventListener("popstate", () => {
  settle();
  clearTimeout(pause);
  box.value = new URLSearchParams(location.search).get("q") ?? "";
  show(location.search);
});

function step(by) {
  const links = [...region.querySelectorAll("[data-result]")];
  const at = links.indexOf(document.activeElement) + by;
  if (at < 0) box.focus();
  else links[Math.min(at, links.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  const inResults = region.contains(document.activeElement);
  const inBox = document.activeElement === box;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && inBox && box.value.trim()) {
    // With the filters of what is shown; what was typed since is asked under those of the address.
    const shown = addressOf(box.value.trim()) === location.search && document.getElementById("ask-instead");
    location.assign(shown ? shown.href : `/ask${addressOf(box.value.trim())}`);
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !event.altKey) {
    if (isTyping(event.target) && !inBox) return;
    if (inBox && event.key === "ArrowUp") return;
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape" && inResults) {
    box.focus();
    box.select();
  }
});

openFilters(false);
wide.addEventListener("change", () => openFilters(false));
if (!box.value || location.hash === "") box.focus({ preventScroll: true });
