// What the scripts say, in the language of the page.
const known = JSON.parse(document.querySelector('meta[name="messages"]')?.content ?? "{}");

export const isChinese = document.documentElement.lang.startsWith("zh");

/** A text in the language of the page, with `values` in place of {their names}; English where no other is known. */
export function translate(message, values = {}) {
  return fill(inLanguage(message), values);
}

/** As `translate`, of a text for one and a text for any other number, which may name the {number}. */
export function pluralize(number, one, many) {
  const said = Object.hasOwn(known, many) ? known[many] : number === 1 ? one : many;
  return fill(said, { number: number.toLocaleString("en") });
}

const inLanguage = (message) => (Object.hasOwn(known, message) ? known[message] : message);

const fill = (said, values) => said.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

/** The texts that there are, one behind the other. */
export const listed = (texts) => texts.filter(Boolean).join(isChinese ? "，" : ", ");
