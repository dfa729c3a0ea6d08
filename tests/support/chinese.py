"""What a page in Chinese still says in another language."""

import re

from playwright.sync_api import Page

_WORD = re.compile(r"[A-Za-z]{3,}")
_NAMES = frozenset({"Quarry", "Agent", "API", "CSV", "JSON", "UTC", "JavaScript", "OpenAI", "URL", "handbook", "scripted", "warranty"})  # fmt: skip
_EXAMPLES = re.compile(
    r"[\w.]+@[\w.]+|\b\w+[:=/][\w:=/.*@-]*|\bQUARRY_\w+|quarry \w+( \w+)*|文件夹 people|\bJSON lines\b|/v1\b"
)
"""Of rules and of commands."""
_QUOTED = "bdi, mark, code, kbd, .tries, time, .excerpt, article, input, textarea, option, .meta > span, .bubble, .answer, .quote, .gist, .work li, #list, h1, .from, blockquote, .spent, template, noscript, script"
"""What documents, sources, people and models are called, and what they say."""
_SHOWN = """quoted => {
  const copy = document.body.cloneNode(true);
  for (const one of copy.querySelectorAll(quoted)) one.remove();
  const spoken = [...copy.querySelectorAll("[aria-label], [title], [placeholder]")]
    .flatMap(one => ["aria-label", "title", "placeholder"].map(name => one.getAttribute(name) ?? ""));
  const texts = [];
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode.data);
  return [...texts, ...spoken].join(" | ");
}"""


def find_english(page: Page) -> list[str]:
    said = _EXAMPLES.sub("", str(page.evaluate(_SHOWN, _QUOTED)))
    return [word for word in _WORD.findall(said) if word not in _NAMES]
