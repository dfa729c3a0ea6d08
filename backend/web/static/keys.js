// Keys that work everywhere.
const dialog = document.getElementById("keys");

export function openKeys() {
  if (!dialog.open) dialog.showModal();
}

export function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

export function watchKeys() {
  watchBox();
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (dialog.open) return;
    if (event.key === "/" && (!isTyping(event.target) || isUntouched(event.target))) {
      event.preventDefault();
      toSearch();
    } else if (event.key === "?" && !isTyping(event.target)) {
      event.preventDefault();
      openKeys();
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

/** A page that opens puts the focus into its box: a "/" pressed then is no text either. */
function watchBox() {
  const box = document.getElementById("q");
  for (const name of ["input", "pointerdown"]) box?.addEventListener(name, () => (box.dataset.touched = ""));
}

function isUntouched(target) {
  return target.id === "q" && target.dataset.touched == null;
}

function toSearch() {
  const box = document.getElementById("q");
  if (!box) {
    location.assign("/");
    return;
  }
  box.focus();
  box.select();
  box.dataset.touched = "";
}
