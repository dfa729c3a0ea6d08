// A document beside the conversation, at its passage, where the window is wide enough; elsewhere its link leads to its page.
import { isTyping } from "./keys.js";
import { hideMissing } from "./page_images.js";
import { parsed } from "./text.js";

const wide = matchMedia("(min-width: 1100px)");
const element = (id) => document.getElementById(id);

/** Open the links to documents within `page` in its pane. `closeCard` closes the card of a citation. Returns what closes the pane. */
export function watchPane(page, closeCard) {
  const pane = element("document");
  let opener = null;
  let loading = null;

  async function open(link) {
    loading?.abort();
    const mine = (loading = new AbortController());
    const nodes = await load(link.href, mine.signal);
    if (mine.signal.aborted) return;
    // What cannot be shown here, its own page explains.
    if (!nodes) return location.assign(link.href);
    if (!pane.contains(link)) opener = openerOf(link);
    closeCard();
    element("document-alone").href = link.href;
    element("document-shown").replaceChildren(...nodes);
    hideMissing(pane);
    keepInPlace(opener, () => show(true));
    toPassage(pane);
  }

  function show(is) {
    pane.hidden = !is;
    page.classList.toggle("with-document", is);
  }

  function close() {
    loading?.abort();
    if (pane.hidden) return;
    const hadFocus = pane.contains(document.activeElement);
    keepInPlace(opener, () => show(false));
    element("document-shown").replaceChildren();
    // An answer that was drawn anew meanwhile has other links.
    if (hadFocus) (opener?.isConnected ? opener : element("title")).focus({ preventScroll: true });
  }

  page.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="/document/"]');
    if (!link || link.id === "document-alone" || !wide.matches || !isPlain(event)) return;
    event.preventDefault();
    open(link);
  });
  element("document-close").addEventListener("click", close);
  wide.addEventListener("change", () => wide.matches || close());
  // Before what else Escape does on the page: it stops an answer.
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || pane.hidden || !isOver(event.target, page)) return;
    event.preventDefault();
    event.stopPropagation();
    close();
  }, { capture: true });
  return close;
}

/** A click that opens no other tab or window, and that nothing else has answered. */
const isPlain = (event) => !event.defaultPrevented && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;

/** Whether Escape is meant for the pane: not for a box, a dialog, a menu, the list or the card of a citation. */
function isOver(target, page) {
  if (isTyping(target) || document.querySelector("dialog[open], .menu") || !element("card").hidden) return false;
  return target === document.body || target === document.documentElement || target.closest("#document, #room") !== null || target === page;
}

/** The citation whose card holds the link, or the link itself. */
const openerOf = (link) => (element("card").contains(link) && document.querySelector('[aria-describedby="card"]')) || link;

async function load(href, signal) {
  const url = new URL(href);
  url.searchParams.set("form", "pane");
  url.hash = "";
  try {
    const response = await fetch(url, { signal, headers: { Accept: "text/html" } });
    return response.ok && !response.redirected ? parsed(await response.text()) : null;
  } catch {
    return null;
  }
}

/** Change the widths of the page so that `anchor` stays where it is in the window. */
function keepInPlace(anchor, change) {
  const before = anchor?.isConnected ? anchor.getBoundingClientRect().top : null;
  change();
  if (before !== null && anchor.isConnected) scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
}

function toPassage(pane) {
  const passage = element("pane-cited");
  const target = passage ?? element("pane-title");
  target.setAttribute("tabindex", "-1");
  const third = (pane.clientHeight - pane.firstElementChild.offsetHeight) / 3;
  pane.scrollTop = passage ? pane.scrollTop + passage.getBoundingClientRect().top - pane.getBoundingClientRect().top - third : 0;
  target.focus({ preventScroll: true });
}
