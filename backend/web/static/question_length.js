// A question may be too long: that is said, and nothing of it is cut.
import { translate } from "./messages.js";
import { joinSentences } from "./sentences.js";

/** As the server counts: an emoji of two units is one character. */
const count = (text) => [...text.trim()].length;

/** Why a text of more than `most` characters cannot be asked; nothing where it can. */
export function tooLong(text, most) {
  const number = count(text);
  if (number <= most) return "";
  return translate("The question has {number} characters. At most {most} are allowed.", { number: number.toLocaleString("en"), most: most.toLocaleString("en") });
}

export class QuestionLength {
  #most;
  #say;
  #said = "";

  constructor(most, say) {
    this.#most = most;
    this.#say = say;
  }

  objection(text) {
    const said = tooLong(text, this.#most);
    return said && joinSentences(said, translate("Shorten it, or attach the long text as a file."));
  }

  /** Say it as soon as a text is typed or pasted, and take it back once it is short enough. */
  watch(text) {
    const said = this.objection(text);
    if (said || this.#said) this.#say(said);
    this.#said = said;
  }

  /** Whether a text is too long to be asked, which is said. */
  refuses(text) {
    this.watch(text);
    return Boolean(this.#said);
  }
}
