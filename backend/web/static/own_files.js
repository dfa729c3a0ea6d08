// The page of one's own files: a deletion is asked about first.
import { replaceControls } from "./text.js";

const dialog = document.getElementById("deleting-file");

for (const form of document.querySelectorAll("form[data-asks]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    document.getElementById("deleting-file-name").textContent = replaceControls(form.dataset.asks);
    dialog.returnValue = "";
    dialog.showModal();
    dialog.addEventListener("close", () => dialog.returnValue === "delete" && form.submit(), { once: true });
  });
}
