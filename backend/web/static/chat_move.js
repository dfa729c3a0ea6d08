// The dialog in which a conversation is moved into a project, or out of it; it says who may read it then.
import { translate } from "./messages.js";
import { send } from "./stream.js";
import { make, replaceControls } from "./text.js";

const element = (id) => document.getElementById(id);

/** Ask where a conversation shall be, and move it there. Returns it as it is then; null where nothing was changed. Throws Problem. */
export async function moveConversation(conversation) {
  const project_id = await chosenPlace(conversation);
  if (project_id === undefined) return null;
  return send("PUT", `/api/conversations/${encodeURIComponent(conversation.id)}/project`, { project_id });
}

/** The id of a project, null for none; undefined where it shall stay where it is. */
function chosenPlace({ title, project_id }) {
  const dialog = element("moving");
  const choice = element("moving-to");
  const projects = [...document.querySelectorAll("[data-project]")];
  const options = projects.map((one) => make("option", { value: one.dataset.project }, replaceControls(one.textContent)));
  choice.replaceChildren(make("option", { value: "" }, translate("No project")), ...options);
  choice.value = project_id ?? "";
  element("moving-title").textContent = replaceControls(title);
  const say = () => {
    element("moving-in").hidden = !choice.value;
    element("moving-out").hidden = Boolean(choice.value);
  };
  choice.onchange = say;
  say();
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const settle = () => {
      const place = choice.value || null;
      resolve(dialog.returnValue === "move" && place !== (project_id ?? null) ? place : undefined);
    };
    dialog.addEventListener("close", settle, { once: true });
  });
}
