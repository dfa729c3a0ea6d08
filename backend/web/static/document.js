// The image of a page is absent where its file was changed or removed since it was synced.
for (const image of document.querySelectorAll(".page-image img")) {
  const hide = () => image.parentElement.classList.add("missing");
  if (image.complete && image.naturalWidth === 0) hide();
  image.addEventListener("error", hide);
}

// A document opens at the passage that it was opened for.
const cited = document.getElementById("cited");

if (cited && location.hash === "#cited") {
  cited.setAttribute("tabindex", "-1");
  cited.focus({ preventScroll: true });
  cited.scrollIntoView({ block: "center" });
}
