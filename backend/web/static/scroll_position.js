// Where the reader is in a conversation: at its end, which is followed while an answer grows, or elsewhere.
const NEAR = 80;
const GAP = 8;
let isAtEnd = true;

const end = () => document.documentElement.scrollHeight;

export function toEnd() {
  isAtEnd = true;
  scrollTo(0, end());
}

/** Keep the place for this entry of the history: Back leads to it. */
export function keepPlace() {
  history.replaceState({ scroll: isAtEnd ? null : scrollY }, "");
}

export function restorePlace() {
  scrollTo(0, history.state?.scroll ?? end());
}

/** Scroll as far as a form that has opened needs, to stand clear of the box below it. */
export function reveal(form) {
  const box = document.querySelector(".composer");
  form.style.scrollMarginBottom = `${(box?.offsetHeight ?? 0) + GAP}px`;
  form.scrollIntoView({ block: "nearest" });
}

/** `isGrowing()` says whether what is new at the end of `thread` is to be followed. */
export function watchPlace(thread, isGrowing) {
  history.scrollRestoration = "manual";
  addEventListener("scroll", () => (isAtEnd = scrollY + innerHeight > end() - NEAR), { passive: true });
  new ResizeObserver(() => isAtEnd && isGrowing() && toEnd()).observe(thread);
}
