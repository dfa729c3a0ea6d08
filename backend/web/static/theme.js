// Light, dark, or as the system has it; the choice is kept in a cookie, so that the server
// renders the next page in it from the start.
import { translate } from "./messages.js";

const ORDER = ["auto", "light", "dark"];
const SAID = {
  auto: translate("Colors: same as the system"),
  light: translate("Colors: light"),
  dark: translate("Colors: dark"),
};

export function watchTheme(button) {
  button.hidden = false;
  updateLabel(button);
  button.addEventListener("click", () => {
    const root = document.documentElement;
    root.dataset.theme = ORDER[(ORDER.indexOf(root.dataset.theme) + 1) % ORDER.length];
    document.cookie = `quarry-theme=${root.dataset.theme}; Path=/; Max-Age=31536000; SameSite=Strict`;
    updateLabel(button);
  });
}

function updateLabel(button) {
  const said = SAID[document.documentElement.dataset.theme];
  button.setAttribute("aria-label", said);
  button.title = said;
}
