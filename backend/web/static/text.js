// Text that others wrote, as nodes: nothing in it is ever taken as markup.
import { isChinese } from "./messages.js";

// The same characters as on the server: controls, and those that reorder their neighbors.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u202a-\u202e\u2066-\u206f\ufff9-\ufffb]/g;

export const replaceControls = (text) => String(text ?? "").replace(CONTROLS, "\ufffd");

/** An element with attributes and children; children that are strings become text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null && child !== ""));
  return element;
}

/** Text of its own direction, which reaches nothing beside it. */
export const isolated = (text) => make("bdi", {}, replaceControls(text));

/** Enable the buttons that wait for a script: whoever calls this listens to them. */
export function wire(root) {
  for (const button of root.querySelectorAll("[data-unwired]")) {
    button.disabled = false;
    button.removeAttribute("data-unwired");
  }
}

/** HTML that our own server rendered, as nodes. */
export function parsed(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  wire(body);
  return [...body.childNodes];
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** As the server writes days. */
export function day(iso) {
  if (!iso) return "";
  const date = new Date(iso);
  return dayOf(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
}

/** As `day`, in the zone of the reader. */
export function localDay(date) {
  return dayOf(date.getFullYear(), date.getMonth(), date.getDate());
}

function dayOf(year, month, day) {
  return isChinese ? `${year}年${month + 1}月${day}日` : `${day} ${MONTHS[month]} ${year}`;
}

/** Text on one line; the cells of a table apart by dots. */
export function gist(text) {
  const rows = String(text ?? "").replace(/^\|(?:\s*:?-+:?\s*\|)+\s*$/gm, "");
  return replaceControls(rows.replace(/^\|\s*|\s*\|$/gm, "").replace(/\s*\|\s*/g, " · ").replace(/\s+/g, " ").trim());
}

/** What is quoted: the rows of a table as they are read, any other text as it stands. */
export const quotation = (text) => (/^\s*\|/m.test(text) ? gist(text) : replaceControls(text));

/** The page of a document, at a passage of it if one is given. */
export function documentUrl(id, section, span) {
  const path = `/document/${encodeURIComponent(id)}`;
  if (section == null || !span || span[0] >= span[1]) return path;
  return `${path}?section=${section}&start=${span[0]}&end=${span[1]}#cited`;
}
