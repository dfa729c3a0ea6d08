// The title that a language model gives a conversation some seconds after its first answer.
import { readConversation } from "./conversation_api.js";
import { Problem } from "./stream.js";

/** Milliseconds before each look. */
const LOOKS = [600, 1_500, 4_000, 10_000];

/** The conversation as soon as it has a title that is not made of the question's words; null where it gets none. */
export async function awaitTitle({ id, title_by }) {
  if (title_by !== "words") return null;
  for (const pause of LOOKS) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    try {
      const { conversation } = await readConversation(id, { limit: 1 });
      if (conversation.title_by !== "words") return conversation;
    } catch (error) {
      if (error instanceof Problem) return null;
      throw error;
    }
  }
  return null;
}
