// The third mode of the chat: the question goes to research, which goes on from the conversation.
import { send } from "./stream.js";

/** Begin a run and open its page. Throws Problem. */
export async function startResearch(question, body) {
  const { run } = await send("POST", "/api/research", { question, ...body });
  location.assign(`/research/${encodeURIComponent(run.id)}`);
}
