// On every page: colours, times, the list of keys, the ways to the search box.
import { watchClocks } from "./clock.js";
import { openKeys, watchKeys } from "./keys.js";
import { watchTheme } from "./theme.js";

for (const button of document.querySelectorAll("[data-open-keys]")) {
  button.hidden = false;
  button.addEventListener("click", openKeys);
}
watchKeys();
watchClocks();
watchTheme(document.querySelector("[data-theme-switch]"));
