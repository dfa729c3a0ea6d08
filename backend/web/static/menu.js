// A menu of a few actions, beside the button that opens it.
import { make } from "./text.js";

const GAP = 4;
let shut = null;

/** Show `actions`, [label, function] each; arrow keys move through them, Escape leads back to the button. */
export function openMenu(button, actions) {
  const wasOpen = button.getAttribute("aria-expanded") === "true";
  shut?.();
  if (wasOpen) return;
  const items = actions.map(([label, act]) => {
    const item = make("button", { type: "button", role: "menuitem", tabindex: "-1" }, label);
    item.addEventListener("click", () => {
      close();
      button.focus();
      act();
    });
    return item;
  });
  const menu = make("div", { class: "menu", role: "menu", "aria-label": button.getAttribute("aria-label") }, ...items);

  function close() {
    shut = null;
    menu.remove();
    button.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside, true);
    removeEventListener("scroll", follow, true);
  }

  function outside(event) {
    if (!menu.contains(event.target) && !button.contains(event.target)) close();
  }

  /** Stay beside the button: an answer that is being written scrolls the page by itself. */
  function follow(event) {
    if (event.target.contains(button)) place(menu, button);
  }

  menu.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) items.at(to % items.length).focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      close();
      button.focus();
    } else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  });
  shut = close;
  button.setAttribute("aria-expanded", "true");
  button.after(menu);
  place(menu, button);
  items[0].focus();
  document.addEventListener("pointerdown", outside, true);
  addEventListener("scroll", follow, true);
}

/** The menu is fixed to the window: the list that it stands in scrolls. */
function place(menu, button) {
  const at = button.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  const page = document.documentElement;
  const below = at.bottom + GAP + size.height <= page.clientHeight;
  menu.style.top = `${below ? at.bottom + GAP : at.top - size.height - GAP}px`;
  menu.style.left = `${Math.max(GAP, Math.min(at.left, page.clientWidth - size.width - GAP))}px`;
}
