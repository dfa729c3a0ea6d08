// The conversations of the asker, as the server keeps them.
import { send } from "./stream.js";

const ALL = "/api/conversations";
const url = (id, rest = "") => `${ALL}/${encodeURIComponent(id)}${rest}`;
const message = (id, messageId, action) => url(id, `/messages/${messageId}/${action}`);

function searchOf(values = {}) {
  const given = Object.entries(values).filter(([, value]) => value != null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

export const listConversations = (values, signal) => send("GET", ALL + searchOf(values), undefined, signal);
export const readConversation = (id, values, signal) => send("GET", url(id, searchOf(values)), undefined, signal);
/** `choices`: assistant_id, project_id, files, search_scope, mode and its switches. */
export const beginConversation = (question, choices) => send("POST", ALL, { question, ...choices });
export const changeConversation = (id, changes) => send("PATCH", url(id), changes);
export const deleteConversation = (id) => send("DELETE", url(id));
export const postQuestion = (id, question, parent_id, choices) => send("POST", url(id, "/messages"), { question, parent_id, ...choices });
export const regenerate = (id, messageId) => send("POST", message(id, messageId, "regenerate"));
/** Stop what is being answered, also beside the path that is shown. */
export const stopAnswers = (id) => send("POST", url(id, "/stop"));
export const eventsUrl = (id, messageId) => message(id, messageId, "events");
