// The page of feedback: answers as the server rendered and cleaned them.
import { parsed } from "./text.js";

for (const answer of document.querySelectorAll("[data-html]")) answer.replaceChildren(...parsed(answer.dataset.html));
