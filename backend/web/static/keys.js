// Keys that work everywhere.
const dialog = document.getElementById("keys");

export function openKeys() {
  if (!dialog.open) dialog.showModal();
}

export function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

export function watchKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target) || dialog.open) return;
    if (event.key === "?") {
      event.preventDefault();
      openKeys();
    } else if (event.key === "/") {
      event.preventDefault();
      toSearch();
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

function toSearch() {
  const box = document.getElementById("q");
  if (!box) {
    location.assign("/");
    return;
  }
  box.focus();
  box.select();
}
