// The page of a decision: keep the documents that are missing from a source, or delete them.
import { Problem, send } from "./stream.js";
import { replaceControls } from "./text.js";

const page = document.getElementById("decision");
const refused = document.getElementById("refused");
const dialog = document.getElementById("deleting");
const address = encodeURIComponent(page.dataset.source);

async function decide(action) {
  refused.hidden = true;
  for (const button of page.querySelectorAll("button")) button.disabled = true;
  try {
    await send("POST", `/api/admin/sources/${address}/${action}`);
    location.assign(`/source/${address}`);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    refused.textContent = replaceControls(problem.sentence);
    refused.hidden = false;
    for (const button of page.querySelectorAll("button")) button.disabled = false;
  }
}

page.querySelector("[data-keep-all]").addEventListener("click", () => decide("keep"));
document.getElementById("delete").addEventListener("click", () => dialog.showModal());
dialog.addEventListener("close", () => {
  if (dialog.returnValue === "delete") decide(`accept?missing=${page.dataset.missing}`);
});
