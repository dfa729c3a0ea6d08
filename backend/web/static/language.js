// The language of the pages, where no account says it: the choice is kept in a cookie, and the server renders in it.
export function watchLanguage(select) {
  select.hidden = false;
  select.addEventListener("change", () => {
    document.cookie = `quarry-language=${select.value}; Path=/; Max-Age=31536000; SameSite=Strict`;
    location.reload();
  });
}
