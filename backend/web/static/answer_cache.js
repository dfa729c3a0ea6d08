// Answers by entry of the history: Back shows what was there, and asks nobody again.
const MOST = 20;
const ASKER = "asker";

const key = () => history.state?.turn && `turn ${history.state.turn}`;

/** Keep a turn for this entry of the history, as long as the tab lives and its person is signed in. */
export function keep(turn) {
  if (!history.state?.turn) {
    history.replaceState({ turn: `${Date.now()}-${Math.random()}` }, "", location.href);
  }
  try {
    dropOldest();
    sessionStorage.setItem(key(), JSON.stringify(turn));
  } catch (error) {
    if (error.name !== "QuotaExceededError") throw error;
  }
}

export function kept() {
  const text = key() && sessionStorage.getItem(key());
  return text ? JSON.parse(text) : null;
}

/** Drop what was kept for somebody else than this page is for: who has signed out, or is another person. */
export function dropOthers() {
  const asker = document.querySelector('meta[name="asker"]').content;
  if (sessionStorage.getItem(ASKER) === asker) return;
  dropAll();
  sessionStorage.setItem(ASKER, asker);
}

export function dropAll() {
  for (const name of keptKeys()) sessionStorage.removeItem(name);
}

function dropOldest() {
  const keys = keptKeys().sort();
  for (const name of keys.slice(0, Math.max(0, keys.length - MOST))) sessionStorage.removeItem(name);
}

const keptKeys = () => Object.keys(sessionStorage).filter((name) => name.startsWith("turn "));
