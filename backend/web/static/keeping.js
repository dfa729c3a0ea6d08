// Answers by entry of the history: Back shows what was there, and asks nobody again.
const MOST = 20;

const key = () => history.state?.turn && `turn ${history.state.turn}`;

/** Keep a turn for this entry of the history, as long as the tab lives. */
export function keep(turn) {
  if (!history.state?.turn) {
    history.replaceState({ turn: `${Date.now()}-${Math.random()}` }, "", location.href);
  }
  try {
    drop();
    sessionStorage.setItem(key(), JSON.stringify(turn));
  } catch (error) {
    if (error.name !== "QuotaExceededError") throw error;
  }
}

export function kept() {
  const text = key() && sessionStorage.getItem(key());
  return text ? JSON.parse(text) : null;
}

function drop() {
  const keys = Object.keys(sessionStorage).filter((name) => name.startsWith("turn ")).sort();
  for (const name of keys.slice(0, Math.max(0, keys.length - MOST))) sessionStorage.removeItem(name);
}
