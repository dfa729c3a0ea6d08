// Where the reader is in a conversation: at its end, which is followed while an answer grows, or elsewhere.
const NEAR = 80;
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

/** `isGrowing()` says whether what is new at the end of `thread` is to be followed. */
export function watchPlace(thread, isGrowing) {
  history.scrollRestoration = "manual";
  addEventListener("scroll", () => (isAtEnd = scrollY + innerHeight > end() - NEAR), { passive: true });
  new ResizeObserver(() => isAtEnd && isGrowing() && toEnd()).observe(thread);
}
