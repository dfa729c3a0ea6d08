// The page of a document.
import { hideMissing } from "./page_images.js";

hideMissing(document);

// A document opens at the passage that it was opened for.
const cited = document.getElementById("cited");

if (cited && location.hash === "#cited") {
  cited.setAttribute("tabindex", "-1");
  cited.focus({ preventScroll: true });
  cited.scrollIntoView({ block: "center" });
}
