// Forms that delete something: a dialog of the page asks first, and shows what it is.
import { replaceControls } from "./text.js";

for (const form of document.querySelectorAll("form[data-asks]")) {
  const dialog = document.getElementById(form.dataset.dialog);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.querySelector("[data-asked]").textContent = replaceControls(form.dataset.asks);
    dialog.returnValue = "";
    dialog.showModal();
    dialog.addEventListener("close", () => dialog.returnValue === "delete" && form.submit(), { once: true });
  });
}
