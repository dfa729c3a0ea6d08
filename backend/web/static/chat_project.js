// The project of the conversation that is shown, or of the one that begins: the address says it then.
const element = (id) => document.getElementById(id);

/** Returns the id of the project in which is asked; null where it is none. */
export function chosenProject(conversation) {
  return conversation ? conversation.project_id : new URLSearchParams(location.search).get("project");
}

export function showProject(conversation) {
  const id = chosenProject(conversation);
  const link = [...document.querySelectorAll("[data-project]")].find((one) => one.dataset.project === id);
  element("project").hidden = !link;
  if (!link) return;
  element("project-name").textContent = link.textContent;
  element("project-name").href = link.href;
}
