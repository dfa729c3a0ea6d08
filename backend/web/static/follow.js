// The events of a turn, or of research, that runs on the server, over as many connections as it takes.
import { untilShown, watchHiding } from "./page_visibility.js";
import { Problem, resume } from "./stream.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5_000;
/** A shorter loss is not worth a word. */
const NOTICED = 2_000;
const LAST = new Set(["done", "error", "stopped", "failed", "interrupted", "gone"]);

/**
 * Yields {id, name, data} until its last event, which is `gone` where the server keeps its events no more.
 * Goes on by itself where the connection was lost, or the server has no room for one more follower now; `tell(isLost, why)`
 * says so after a while, and when it is back. A page that nobody sees lets its connection go until it is seen again.
 * Throws Problem; an AbortError if `signal` ended it.
 */
export async function* follow(url, signal, tell) {
  const loss = new Loss(tell);
  let after = 0;
  let pause = FIRST_PAUSE;
  try {
    for (;;) {
      const hiding = new AbortController();
      const unwatch = watchHiding(() => hiding.abort());
      let refusal = null;
      try {
        for await (const event of resume(url, after, AbortSignal.any([signal, hiding.signal]), () => loss.end())) {
          pause = FIRST_PAUSE;
          after = event.id || after;
          yield event;
          if (LAST.has(event.name)) return;
        }
      } catch (error) {
        if (!isPassing(error, signal, hiding.signal)) throw error;
        refusal = error;
      } finally {
        unwatch();
      }
      // Connections that fail at once never last until the page counts as hidden.
      if (hiding.signal.aborted || document.hidden) {
        loss.end();
        await untilShown(signal);
      } else {
        loss.begin(refusal?.retryAfter ? refusal.detail : "");
        await rest(Math.max(pause, refusal?.retryAfter ?? 0), signal);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
  } finally {
    loss.end();
  }
}

function isPassing(error, signal, hiding) {
  if (error instanceof Problem) return error.isPassing;
  return hiding.aborted && !signal.aborted;
}

class Loss {
  #tell;
  #timer = 0;
  #isTold = false;
  #why = "";

  constructor(tell) {
    this.#tell = tell;
  }

  begin(why) {
    this.#why = why;
    if (this.#isTold) this.#tell(true, why);
    this.#timer ||= setTimeout(() => {
      this.#isTold = true;
      this.#tell(true, this.#why);
    }, NOTICED);
  }

  end() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#isTold) this.#tell(false);
    this.#isTold = false;
  }
}

/** Wait; a browser that is online again tries at once. */
function rest(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(end, milliseconds);
    function end() {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    }
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}
