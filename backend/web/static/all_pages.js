// On every page: what others left in this tab and what is left to them, colors, language, times, the list of keys, the ways to the search box.
import { watchClocks } from "./clock.js";
import { dropAll, dropOthers } from "./answer_cache.js";
import { dropDrafts } from "./drafts.js";
import { openKeys, watchKeys } from "./keys.js";
import { watchLanguage } from "./language.js";
import { watchTheme } from "./theme.js";

dropOthers();
for (const form of document.querySelectorAll('form[action="/sign-out"]')) {
  form.addEventListener("submit", () => {
    dropAll();
    dropDrafts(document.querySelector('meta[name="asker"]').content);
  });
}
for (const button of document.querySelectorAll("[data-open-keys]")) {
  button.hidden = false;
  button.addEventListener("click", openKeys);
}
watchKeys();
watchClocks();
for (const select of document.querySelectorAll("[data-language-switch]")) watchLanguage(select);
watchTheme(document.querySelector("[data-theme-switch]"));
