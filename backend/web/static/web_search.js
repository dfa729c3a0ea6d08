// The pages of web search: switch it, add, change, test and order providers, and say what may be in a search.
import { clearFaults, showFaults, valuesOf, watchFields } from "./fields.js";
import { translate } from "./messages.js";
import { Problem, send } from "./stream.js";
import { isolated, make, parsed, replaceControls } from "./text.js";

const WEB = "/api/admin/web";
const SHOWN_MS = 12000;
const part = document.querySelector("[data-part]");
const status = document.getElementById("status");
let statusTimer = 0;

const urlOf = (name, rest = "") => `${WEB}/providers/${encodeURIComponent(name)}${rest}`;

function tell(text) {
  clearTimeout(statusTimer);
  status.textContent = replaceControls(text);
  statusTimer = setTimeout(() => (status.textContent = ""), SHOWN_MS);
}

/** Show the providers as they are now; what has the focus keeps it. */
async function refresh() {
  const response = await fetch(part.dataset.part, { headers: { Accept: "text/html" } }).catch(() => null);
  if (response?.status === 401) return location.reload();
  if (!response?.ok) return;
  const kept = part.contains(document.activeElement) && document.activeElement.dataset.keep;
  part.replaceChildren(...parsed(await response.text()));
  if (!kept) return;
  const again = part.querySelector(`[data-keep="${CSS.escape(kept)}"]`);
  const other = again?.closest("[data-provider]")?.querySelector("button:not(:disabled)");
  (again?.disabled ? other : again)?.focus({ preventScroll: true });
}

/** Run an action and show its result, or the problem. */
async function act(action, done) {
  try {
    await action();
    await refresh();
    if (done) tell(done);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    tell(problem.sentence);
  }
}

const FAILURES = {
  credential: translate("The key is rejected."),
  quota: translate("The quota is used up."),
  "rate limit": translate("It was asked too often."),
  "too slow": translate("It did not answer in time."),
  unavailable: translate("It does not answer."),
  settings: translate("Its settings are wrong."),
  unusable: translate("Its answer cannot be used."),
  "nothing found": translate("It found nothing."),
};

function describe({ results, attempts }) {
  const [attempt] = attempts;
  const sent = attempt.sent
    ? translate("“{query}” was sent to {receiver}.", { query: replaceControls(attempt.sent), receiver: attempt.receiver })
    : translate("Nothing was sent.");
  if (attempt.failure) {
    const reason = attempt.failure === "nothing found" ? "" : replaceControls(attempt.reason);
    return [make("p", { class: "fault" }, `${FAILURES[attempt.failure]} ${reason}`), make("p", { class: "hint" }, sent)];
  }
  const shown = results.map((one) =>
    make("li", {}, isolated(one.title), make("span", { class: "dim" }, isolated(one.url)), make("span", { class: "dim" }, isolated(one.summary))),
  );
  return [make("p", {}, make("span", { class: "state done" }, translate("It answers")), " ", sent), make("ol", {}, ...shown)];
}

async function test(item, button) {
  const outcome = item.querySelector(".outcome");
  button.disabled = true;
  outcome.hidden = false;
  outcome.replaceChildren(make("p", { class: "dim" }, translate("Testing…")));
  try {
    const found = await send("POST", urlOf(item.dataset.provider, "/test"), { query: part.dataset.query });
    outcome.replaceChildren(...describe(found));
    const { failure } = found.attempts[0];
    tell(failure ? FAILURES[failure] : translate("It answers"));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    outcome.replaceChildren(make("p", { class: "fault" }, replaceControls(problem.sentence)));
  }
  button.disabled = false;
  button.focus({ preventScroll: true });
}

part?.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const item = button.closest("[data-provider]");
  const { dataset } = button;
  if ("switch" in dataset) {
    const isOn = dataset.switch === "on";
    const done = isOn ? translate("The web is switched on.") : translate("The web is switched off.");
    act(() => send("PATCH", WEB, { is_on: isOn }), done);
  } else if ("test" in dataset) test(item, button);
  else if ("move" in dataset) {
    const position = Number(item.dataset.place) + Number(dataset.move);
    act(() => send("PUT", urlOf(item.dataset.provider, "/position"), { position }));
  } else if ("enable" in dataset) {
    act(() => send("PATCH", urlOf(item.dataset.provider), { is_enabled: dataset.enable === "yes" }));
  }
});

/** Submit a form by `save`; faults stand beside their fields. */
function handle(form, save) {
  const refused = form.querySelector(".refused");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.hidden = true;
    clearFaults(form);
    try {
      await save(valuesOf(form));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      const others = problem.errors?.length ? showFaults(form, problem.errors) : [problem.sentence];
      refused.textContent = replaceControls(others.join(" "));
      refused.hidden = !others.length;
      tell(translate("The settings were not saved"));
    }
  });
  watchFields(form);
}

async function add(form, { name, settings = {}, credential }) {
  const body = { kind: form.dataset.kind, settings, ...(name ? { name } : {}), ...(credential ? { credential } : {}) };
  const added = await send("POST", `${WEB}/providers`, body);
  form.reset();
  await refresh();
  const item = part.querySelector(`[data-provider="${CSS.escape(added.name)}"]`);
  item?.scrollIntoView({ block: "nearest" });
  tell(translate("{name} is added.", { name: added.name }));
  const button = item?.querySelector("[data-test]");
  if (button) await test(item, button);
}

async function edit(form, { settings = {}, credential, per_minute = 0 }) {
  await send("PATCH", urlOf(form.dataset.edits), { settings, per_minute, ...(credential ? { credential } : {}) });
  for (const secret of form.querySelectorAll('[type="password"]')) secret.value = "";
  for (const shut of form.querySelectorAll("[data-credential]")) shut.open = false;
  tell(translate("Saved."));
}

const connect = document.querySelector("form.connect[data-kind]");
if (connect) handle(connect, (values) => ("edits" in connect.dataset ? edit(connect, values) : add(connect, values)));

const rules = document.getElementById("rules");
if (rules) {
  handle(rules, async ({ allowed_domains = [], blocked_domains = [], keeps_internal_names }) => {
    const saved = await send("PATCH", WEB, { allowed_domains, blocked_domains, keeps_internal_names });
    rules.querySelector("#allowed").value = saved.allowed_domains.join("\n");
    rules.querySelector("#blocked").value = saved.blocked_domains.join("\n");
    tell(translate("Saved."));
  });
}

const removing = document.getElementById("removing");
const remove = document.getElementById("remove");
remove?.addEventListener("click", () => removing.showModal());
removing?.addEventListener("close", async () => {
  if (removing.returnValue !== "remove") return;
  try {
    await send("DELETE", urlOf(remove.dataset.provider));
    location.assign("/web-search");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    tell(problem.sentence);
  }
});
