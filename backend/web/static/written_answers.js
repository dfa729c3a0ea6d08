// Answers that stand in a page as the server rendered them; without a script their Markdown is read.
import { parsed } from "./text.js";

for (const answer of document.querySelectorAll("[data-html]")) answer.replaceChildren(...parsed(answer.dataset.html));
