// Forms of sources: from their fields to what the API takes, and from its faults back to the fields.
import { joinSentences, translateSentence } from "./sentences.js";
import { replaceControls } from "./text.js";

/** {name, settings, credential} of all fields that are not left empty; of a part that is shut, nothing. */
export function valuesOf(form) {
  const values = {};
  for (const field of form.querySelectorAll("[data-path]")) {
    if (field.disabled || field.closest("fieldset:disabled")) continue;
    const value = READ[field.dataset.control](field);
    if (value !== undefined) put(values, field.dataset.path.split("."), value);
  }
  return values;
}

/** Show each fault beside its field; what has none is returned, as sentences. */
export function showFaults(form, faults) {
  const others = [];
  let first = null;
  for (const { where, message } of faults) {
    const field = fieldOf(form, where);
    if (!field) {
      others.push(replaceControls(translateSentence(message)));
      continue;
    }
    const shown = document.getElementById(`${field.id}-fault`);
    shown.textContent = joinSentences(shown.textContent, replaceControls(translateSentence(message)));
    shown.hidden = false;
    field.setAttribute("aria-invalid", "true");
    const shut = field.closest("details:not([open])");
    if (shut) shut.open = true;
    first ??= field;
  }
  first?.focus();
  return others;
}

export function clearFaults(form) {
  for (const shown of form.querySelectorAll(".fault")) {
    shown.textContent = "";
    shown.hidden = true;
  }
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** Keep a form in order while it is filled in: variants, what is shut, texts of several lines. */
export function watchFields(form) {
  form.addEventListener("change", (event) => {
    if (event.target.dataset?.control === "variants") chooseVariant(form, event.target);
  });
  form.addEventListener("input", (event) => pasted.delete(event.target));
  // The fields have their first values only after this event.
  form.addEventListener("reset", () => setTimeout(() => forget(form)));
  form.addEventListener("paste", keepLines);
  for (const details of form.querySelectorAll("[data-credential]")) {
    details.addEventListener("toggle", () => {
      details.querySelector("fieldset").disabled = !details.open;
    });
  }
}

/** Texts of several lines that were pasted where one line has room, such as keys. */
const pasted = new WeakMap();

/** After a reset nothing that was pasted is left, and each choice shows its own fields. */
function forget(form) {
  for (const field of form.elements) pasted.delete(field);
  for (const select of form.querySelectorAll('[data-control="variants"]')) chooseVariant(form, select);
}

const READ = {
  line: (field) => pasted.get(field) ?? (field.value.trim() || undefined),
  date: (field) => field.value || undefined,
  secret: (field) => pasted.get(field) ?? (field.value || undefined),
  number: (field) => (field.value === "" ? badNumber(field) : Number(field.value)),
  switch: (field) => field.checked,
  choice: (field) => field.value || undefined,
  variants: (field) => field.value || undefined,
  lines: (field) => lines(field.value),
  checks: (field) => [...field.querySelectorAll(":checked")].map((each) => each.value),
  json: (field) => (field.value.trim() ? json(field.value) : undefined),
};

/** What is no number is sent as it is, so that the server says what it thinks of it. */
const badNumber = (field) => (field.validity.badInput ? "?" : undefined);

function lines(text) {
  const found = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return found.length ? found : undefined;
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function put(values, path, value) {
  const last = path.pop();
  let inner = values;
  for (const step of path) inner = inner[step] ??= {};
  inner[last] = value;
}

function fieldOf(form, where) {
  const fields = [...form.querySelectorAll("[data-path]")].filter((field) => !field.closest("fieldset:disabled"));
  for (let path = where; path; path = path.slice(0, Math.max(path.lastIndexOf("."), 0))) {
    const found = fields.find((field) => field.dataset.path === path || tagged(field, path));
    if (found) return found;
  }
  return null;
}

/** A fault of a choice between variants stands at the choice itself. */
const tagged = (field, path) =>
  field.dataset.control === "variants" && field.dataset.path.slice(0, field.dataset.path.lastIndexOf(".")) === path;

function chooseVariant(form, select) {
  for (const group of form.querySelectorAll("[data-variant-of]")) {
    if (group.dataset.variantOf !== select.dataset.path) continue;
    group.hidden = group.disabled = group.dataset.variant !== select.value;
  }
}

function keepLines(event) {
  const field = event.target;
  const text = event.clipboardData.getData("text/plain");
  if (!["line", "secret"].includes(field.dataset?.control) || !text.trim().includes("\n")) return;
  event.preventDefault();
  field.value = field.dataset.control === "secret" ? "•".repeat(12) : text.replace(/\s+/g, " ").slice(0, 200);
  pasted.set(field, text.replace(/\r\n?/g, "\n"));
}
