// Sentences that the server writes in English, with values inside, in the language of the page. They are recognized by
// their form, as by backend/web/sentences.py, which says what the placeholders stand for; what has no known form stays.
import { isChinese } from "./messages.js";

const PLACEHOLDER = /%\((\w+)\)s/;
const LONGEST = 2_000;
const MOST_PARTS = 20;
const ENDS = /(?<=[.?!]) (?=[A-Z])/;
const address = document.querySelector('meta[name="sentences"]')?.content;

let texts = new Map();
let forms = [];

/** What comes from the server waits for this. */
export const sentencesLoaded = address ? load() : Promise.resolve();

async function load() {
  const response = await fetch(address).catch(() => null);
  if (!response?.ok) return;
  const messages = Object.entries(await response.json());
  texts = new Map(messages.filter(([english]) => !PLACEHOLDER.test(english)));
  forms = messages.filter(([english]) => PLACEHOLDER.test(english)).map(([english, said]) => [patternOf(english), said]);
}

/** A text that the server has written, in the language of the page if that is known. */
export function translateSentence(text) {
  if (!text || !texts.size || text.length > LONGEST) return text;
  return find(text) ?? translateEach(text);
}

/** Sentences one behind the other; what is empty is left out. */
export const joinSentences = (...sentences) => sentences.filter(Boolean).join(isChinese ? "" : " ");

/** A title as a sentence of its own. */
export const asSentence = (title) => (!title || /[.?!…。？！]$/.test(title) ? title : title + (isChinese ? "。" : "."));

/** A text of several sentences, or of several parts, each by itself. */
function translateEach(text) {
  if (text.includes(" · ")) return text.split(" · ").map(translateSentence).join(" · ");
  return join("，", text.split(", ")) ?? join("", text.split(ENDS)) ?? text;
}

function join(between, parts) {
  const said = parts.slice(0, MOST_PARTS).map(find);
  return parts.length > 1 && said.length === parts.length && !said.includes(null) ? said.join(between) : null;
}

function find(text) {
  if (texts.has(text)) return texts.get(text);
  for (const [pattern, said] of forms) {
    const found = pattern.exec(text);
    if (found) return said.replace(/%\((\w+)\)s|%%/g, (whole, name) => (name ? valueOf(name, found.groups[name]) : "%"));
  }
  return null;
}

function valueOf(name, value) {
  if (name.startsWith("said") || name.startsWith("part")) return translateSentence(value);
  if (name.startsWith("listed")) return value.split(", ").map(translateSentence).join("、");
  return value;
}

function patternOf(english) {
  const parts = english.split(PLACEHOLDER);
  const pattern = parts.map((part, at) => (at % 2 ? `(?<${part}>${valuePattern(part)})` : escaped(part.replaceAll("%%", "%"))));
  return new RegExp(`^${pattern.join("")}$`);
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

function valuePattern(name) {
  if (name.startsWith("number")) return "[\\d,.]*\\d%?";
  if (name.startsWith("part")) return "[^.:]+?";
  return name.startsWith("date") ? "[\\d-]+" : ".+?";
}
