// An answer of somebody else in a project, while it is written: its words as they come, then the page as it is kept.
import { follow } from "./follow.js";
import { Problem } from "./stream.js";
import { replaceControls } from "./text.js";

const gone = new AbortController();
addEventListener("pagehide", () => gone.abort());
addEventListener("pageshow", (event) => event.persisted && location.reload());

for (const answer of document.querySelectorAll("[data-follow]")) watch(answer);

async function watch(answer) {
  try {
    for await (const { name, data } of follow(answer.dataset.follow, gone.signal, () => {})) {
      if (name === "error") throw new Problem(data);
      if (name === "text") answer.append(replaceControls(data.text));
    }
    location.reload();
  } catch (error) {
    if (gone.signal.aborted) return;
    if (!(error instanceof Problem)) throw error;
    answer.textContent = replaceControls(error.sentence);
  }
}
