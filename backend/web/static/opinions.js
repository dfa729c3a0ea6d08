// The page of feedback: answers as the server rendered and cleaned them.
import { answerNodes } from "./answer_nodes.js";

for (const answer of document.querySelectorAll("[data-html]")) answer.replaceChildren(...answerNodes(answer.dataset.html));
