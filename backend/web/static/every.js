// On every page: colours, the list of keys, the ways to the search box.
import { openKeys, watchKeys } from "./keys.js";
import { watchTheme } from "./theme.js";

for (const button of document.querySelectorAll("[data-open-keys]")) {
  button.hidden = false;
  button.addEventListener("click", openKeys);
}
watchKeys();
watchTheme(document.querySelector("[data-theme-switch]"));
