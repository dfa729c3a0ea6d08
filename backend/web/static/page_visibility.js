// Whether somebody can see this page: over HTTP/1.1 a browser has six connections to a server, for all of its tabs together.

/** Somebody who leafs through tabs hides a page for less. */
const LINGER = 1_500;

/** Call `act` once the page was hidden for a while. Returns what ends the watch. */
export function watchHiding(act) {
  let timer = 0;
  function look() {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(act, LINGER);
  }
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

/** Wait until the page can be seen. */
export function untilShown(signal) {
  return new Promise((resolve, reject) => {
    function look() {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    }
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}
