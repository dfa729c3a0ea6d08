// The pages of document sets: how far their documents are updated, without a reload.
import { parsed } from "./text.js";

const SOON = 1000;
const LATER = 20000;
const part = document.querySelector("[data-part]");
let shown = "";

async function refresh() {
  const response = await fetch(part.dataset.part, { headers: { Accept: "text/html" } }).catch(() => null);
  if (response?.status === 401) return location.reload();
  if (response?.status === 404) return location.assign("/sets");
  const text = response?.ok ? await response.text() : shown;
  if (text !== shown) replace(text);
  shown = text;
  schedule();
}

function replace(text) {
  const kept = part.contains(document.activeElement) && document.activeElement.dataset.keep;
  part.replaceChildren(...parsed(text));
  if (kept) part.querySelector(`[data-keep="${CSS.escape(kept)}"]`)?.focus({ preventScroll: true });
}

function schedule() {
  const busy = part.querySelector('[data-busy="yes"]');
  setTimeout(() => (document.hidden ? schedule() : refresh()), busy ? SOON : LATER);
}

schedule();
