// What the scripts say, in the language of the page.
const known = JSON.parse(document.querySelector('meta[name="messages"]')?.content ?? "{}");

/** A text in the language of the page, with `values` in the place of {their names}; English where no other is known. */
export function translate(message, values = {}) {
  const said = Object.hasOwn(known, message) ? known[message] : message;
  return said.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
