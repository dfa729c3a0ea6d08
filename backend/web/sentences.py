"""Sentences that lower layers write in English, with values inside, in the language of a page.

They are recognized by their form: a message of the catalog such as `There is an account of %(email)s already.`. What no
message has the form of stays English.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_LONGEST = 2_000
"""Characters; a longer text is no sentence of ours."""
_KEPT = 2_048
_MOST_PARTS = 20
_ENDS = re.compile(r"(?<=[.?!]) (?=[A-Z])")


@dataclass(frozen=True, slots=True)
class _Form:
    begin: str
    end: str
    """Literal text around its placeholders, which is quickly compared."""
    pattern: re.Pattern[str]
    said: str

    def match(self, text: str) -> re.Match[str] | None:
        if not text.startswith(self.begin) or not text.endswith(self.end):
            return None
        return self.pattern.fullmatch(text)


class SentenceTranslator:
    """Translates by messages whose placeholders stand for any text.

    A placeholder `number…` stands for figures alone, and `date…` for a day such as 2026-03-31. `said…` stands for a text
    that is translated too, `part…` for such a part of one sentence, and `listed…` for several, between commas.
    """

    def __init__(self, messages: Mapping[str, str]) -> None:
        self.messages: Mapping[str, str] = MappingProxyType(
            dict(sorted(messages.items(), key=lambda one: -len(one[0])))
        )
        """The longest first: it says the most of a text that has its form."""
        self._texts = {
            english: said
            for english, said in self.messages.items()
            if not _PLACEHOLDER.search(english)
        }
        forms = [
            _compile_form(english, said)
            for english, said in self.messages.items()
            if _PLACEHOLDER.search(english)
        ]
        self._forms = {
            first: tuple(form for form in forms if form.begin[:1] in {"", first})
            for first in {form.begin[:1] for form in forms}
        }
        """By their first character; none where a placeholder is first."""
        self._find: Callable[[str], str | None] = lru_cache(_KEPT)(self._find_message)
        self._translate: Callable[[str], str] = lru_cache(_KEPT)(self._translate_whole)

    def translate(self, text: str) -> str:
        """Return the text in the language of the messages, or as it is where no message has its form."""
        return text if len(text) > _LONGEST or not self._texts else self._translate(text)

    def _translate_whole(self, text: str) -> str:
        return self._find(text) or self._translate_each(text)

    def _translate_each(self, text: str) -> str:
        """Translate a text of several sentences, or of several parts, each by itself."""
        if " · " in text:
            return " · ".join(map(self.translate, text.split(" · ")))
        return self._join("，", text.split(", ")) or self._join("", _ENDS.split(text)) or text

    def _join(self, between: str, texts: list[str]) -> str | None:
        """Return the texts translated; None unless there are several, each of which is known."""
        said = [self._find(text) for text in texts[:_MOST_PARTS]]
        known = [one for one in said if one is not None]
        return between.join(known) if 1 < len(texts) == len(known) else None

    def _find_message(self, text: str) -> str | None:
        if known := self._texts.get(text):
            return known
        for form in self._forms.get(text[:1]) or self._forms.get("", ()):
            if found := form.match(text):
                return form.said % {
                    name: self._value(name, value) for name, value in found.groupdict().items()
                }
        return None

    def _value(self, name: str, value: str) -> str:
        if name.startswith(("said", "part")):
            return self.translate(value)
        if name.startswith("listed"):
            return "、".join(map(self.translate, value.split(", ")))
        return value


def _compile_form(english: str, said: str) -> _Form:
    """Compile the form of a message: literal text is escaped, each placeholder stands for at least one character."""
    parts = _PLACEHOLDER.split(english)
    texts = [part.replace("%%", "%") for part in parts[::2]]
    groups = [f"(?P<{name}>{_value_pattern(name)})" for name in parts[1::2]]
    pattern = "".join(
        re.escape(text) + group for text, group in zip(texts, [*groups, ""], strict=True)
    )
    return _Form(texts[0], texts[-1], re.compile(pattern), said)


def _value_pattern(name: str) -> str:
    if name.startswith("number"):
        return r"[\d,.]*\d%?"
    if name.startswith("part"):
        return "[^.:]+?"
    return r"[\d-]+" if name.startswith("date") else ".+?"
