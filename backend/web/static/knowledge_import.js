// Import a file of findings: chosen here, checked by the server, which says what came of it.
import { translate } from "./messages.js";
import { send } from "./stream.js";
import { replaceControls } from "./text.js";

const form = document.getElementById("import");
const field = form.querySelector("[data-choose]");
const said = field.querySelector("[data-said]");
const input = field.querySelector("input");

async function importFile(file) {
  said.textContent = translate("Importing {file}", { file: replaceControls(file.name) });
  const report = await send("POST", "/api/knowledge", JSON.parse(await file.text()));
  const counts = new URLSearchParams({ added: report.ids.length, dropped: report.dropped_references });
  location.assign(`/knowledge?${counts}`);
}

field.hidden = false;
input.addEventListener("change", async () => {
  const [file] = input.files;
  input.value = "";
  try {
    if (file) await importFile(file);
  } catch (problem) {
    const isText = problem instanceof SyntaxError;
    const reason = isText ? translate("The file is no JSON.") : replaceControls(problem.sentence ?? problem.message);
    said.textContent = reason;
  }
});
