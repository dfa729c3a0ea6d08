// Where the window is narrow, the list of conversations lies over the page, and is opened by a button.
const narrow = matchMedia("(max-width: 60rem)");

/** `others` are out of reach while the drawer is open. Returns what closes it. */
export function watchDrawer(drawer, opener, closer, others) {
  let isOpen = false;

  function set(open) {
    isOpen = open;
    drawer.classList.toggle("open", open);
    opener.setAttribute("aria-expanded", String(open));
    for (const other of others) other.inert = open;
  }

  function close() {
    if (!isOpen) return;
    set(false);
    opener.focus();
  }

  opener.addEventListener("click", () => {
    set(true);
    closer.focus();
  });
  closer.addEventListener("click", close);
  narrow.addEventListener("change", () => isOpen && set(false));
  document.addEventListener("pointerdown", (event) => {
    if (isOpen && !drawer.contains(event.target) && !event.target.closest("dialog")) close();
  });
  drawer.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !isOpen) return;
    event.preventDefault();
    close();
  });
  return close;
}
