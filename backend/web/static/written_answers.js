// Answers that stand in a page as the server rendered them; without a script their Markdown is read.
import { answerNodes } from "./answer_nodes.js";

for (const answer of document.querySelectorAll("[data-html]")) answer.replaceChildren(...answerNodes(answer.dataset.html));
