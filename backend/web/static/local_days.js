// Moments in groups, by the days of the reader's own calendar.
import { translate } from "./messages.js";

const DAY = 86_400_000;

const midnight = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());

/** How many midnights lie between; days of 23 and 25 hours count as one. */
function daysBetween(earlier, later) {
  return Math.round((midnight(later) - midnight(earlier)) / DAY);
}

function nameOf(moment, now) {
  const days = daysBetween(moment, now);
  if (days < 1) return translate("Today");
  if (days < 2) return translate("Yesterday");
  return days <= 7 ? translate("Previous 7 days") : translate("Older");
}

/** [[name, items]], in the order of the items, which are newest first. */
export function groupByDay(items, momentOf, now = new Date()) {
  const groups = new Map();
  for (const item of items) {
    const name = nameOf(new Date(momentOf(item)), now);
    groups.set(name, [...(groups.get(name) ?? []), item]);
  }
  return [...groups];
}
