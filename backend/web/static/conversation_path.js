// The path of a conversation that is shown: read once more, but for what is shown of it already.
import { readConversation } from "./conversation_api.js";

/** Messages of one more portion; the last ones come in a smaller one. */
const PORTION = 200;

/**
 * The end of the path, to be joined to the messages that are shown: the last ones, and where these do not follow on what
 * is shown, a portion more; or all from the message `wanted` on. `known`: the newest message of which was read before.
 */
export async function readEnd(id, shown, known, wanted) {
  const found = await readConversation(id, { known });
  const lacks = () => found.earlier && !found.messages.some((message) => message.id === wanted);
  if (wanted) while (lacks()) await extend(id, found);
  else if (found.earlier && shown.length > found.messages.length && !follows(found, shown)) await extend(id, found);
  return found;
}

/** The end of a path behind what is shown of it: that has the versions which were made since. `found` alone where it does not follow on it. */
export function joined(shown, earlier, found) {
  if (!follows(found, shown)) return found;
  const kept = shown.slice(0, placeBefore(found, shown) + 1).map((message) => withVersions(message, found.newer));
  return { ...found, messages: [...kept, ...found.messages], earlier };
}

/** The newest message of which `found` says that it is there. */
export const newestOf = ({ messages, newer }) => Math.max(0, ...[...messages, ...newer].flatMap(({ id, siblings = [] }) => [id, ...siblings])) || null;

async function extend(id, found) {
  const more = await readConversation(id, { before: found.earlier, limit: PORTION });
  found.messages = [...more.messages, ...found.messages];
  found.earlier = more.earlier;
}

const placeBefore = ({ messages }, shown) => shown.findIndex(({ id }) => id === messages[0]?.parent_id);
const follows = (found, shown) => placeBefore(found, shown) >= 0;

function withVersions(message, newer) {
  const more = newer.filter(({ parent_id }) => parent_id === message.parent_id).map(({ id }) => id);
  return more.length ? { ...message, siblings: [...new Set([...message.siblings, ...more])] } : message;
}
