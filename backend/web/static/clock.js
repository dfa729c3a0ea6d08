// Times of day in the zone of the reader; the server labels them with UTC, its own.
import { translate } from "./messages.js";
import { localDay } from "./text.js";

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

function localize(root) {
  for (const time of root.querySelectorAll("time[data-clock]")) {
    const at = new Date(time.dateTime);
    time.title = time.textContent;
    time.textContent = translate("{day}, {time}", { day: localDay(at), time: clock.format(at) });
    delete time.dataset.clock;
  }
}

/** Put all times into the zone of the reader, also those of parts that are loaded later. */
export function watchClocks() {
  localize(document);
  new MutationObserver(() => localize(document)).observe(document.body, { childList: true, subtree: true });
}
