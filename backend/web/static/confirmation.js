// Forms that delete something: a dialog of the page asks first, and shows what it is, and what uses it.
import { replaceControls } from "./text.js";

for (const form of document.querySelectorAll("form[data-asks]")) {
  const dialog = document.getElementById(form.dataset.dialog);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.querySelector("[data-asked]").textContent = replaceControls(form.dataset.asks);
    showUses(form, dialog);
    dialog.returnValue = "";
    dialog.showModal();
    dialog.addEventListener("close", () => dialog.returnValue === "delete" && form.submit(), { once: true });
  });
}

/** A form may hold a list of what uses the thing, a dialog a place for it. */
function showUses(form, dialog) {
  const place = dialog.querySelector("[data-used]");
  if (!place) return;
  const uses = form.querySelector("[data-uses]")?.cloneNode(true).children ?? [];
  place.hidden = !uses.length;
  place.querySelector("ul").replaceChildren(...uses);
}
