// The image of a page is absent where its file was changed or removed since it was synced.
export function hideMissing(root) {
  for (const image of root.querySelectorAll(".page-image img")) {
    const hide = () => image.parentElement.classList.add("missing");
    if (image.complete && image.naturalWidth === 0) hide();
    image.addEventListener("error", hide);
  }
}
