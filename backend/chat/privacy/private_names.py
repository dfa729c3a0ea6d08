"""Find names of a single word in a text in Latin script: of projects, products, firms and people.

No dictionary holds every name, and many names are ordinary words. What tells them is how the text writes them: with a
capital where the language asks for none, behind a word that announces a name, with a number behind them, at the beginning
of a sentence with neither an article before them nor a plural behind; and that no dictionary has the word. Names that
everybody knows are none. Not recognized are ordinary words that a text has, in a language that writes each noun with a capital,
within sentences alone, with nothing before them that announces a name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import regex

from backend.chat.privacy.well_known_names import is_well_known
from backend.chat.privacy.words_around_names import (
    ABSTRACT_ENDINGS,
    ANNOUNCING,
    COMMON_SURNAMES,
    COUNTED,
    NOT_ANNOUNCED,
    OFFICE_WORDS,
    VERBS_OF_ONE,
)
from indexing.text.analysis import guess_languages
from indexing.text.normalization import fold
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.vocabulary import load_vocabulary

SHORTEST = 3
LONGEST_ACRONYM = 3
"""Capital letters that no dictionary has: more of them are a name, fewer an abbreviation."""
MOST_FREQUENT = 4_000
"""English words that are no name for a capital alone."""
FREQUENT_WORDS: Mapping[str, int] = {"en": MOST_FREQUENT, "de": 20_000, "fr": 6_000}
"""Words of a language that are no name for standing without an article."""
SHORTEST_HALF = 4
"""Letters of each of two words that make a German one."""
SHORTEST_PART = 3
LONGEST_COMPOUND = 40
"""Letters of a part of a German compound, and of one that is taken apart."""

_LINKS = ("", "s", "es", "n", "en", "er", "e", "-")
"""Between the parts of a German compound."""
_WORD = regex.compile(
    r"[\p{Latin}\p{M}\p{N}]++(?:(?:['’]|[-‐‑])(?=[\p{Latin}\p{N}])[\p{Latin}\p{M}\p{N}]++)*+"
)
_GENITIVE = regex.compile(r"['’]s?\Z")
_CAPITAL_PART = regex.compile(r"(?<![\p{Latin}\p{M}])\p{Lu}[\p{Latin}\p{M}]*+")
_NUMBERED = regex.compile(r"(?P<name>\p{Latin}[\p{Latin}\p{M}]{2,})[-‐‑]?(?P<number>\d{1,6})")
_BLANK = regex.compile(r"[ \t\xa0]{1,2}")
_SENTENCE_START = regex.compile(r"(?:\A|[.!?:;•|\n\r\t>*#])[\s\"'“„»«‚‘(\[*_–—-]*+\Z")
_LOOKED_BACK = 8
"""Characters before a word in which a sentence ends, where it begins one."""
_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())


def find_names(text: str) -> Iterator[str]:
    """Yield the names of a single word, some more than once, and names with the number that follows them."""
    yield from _NameFinder.of(text).find()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int
    folded: str

    @classmethod
    def of(cls, found: "regex.Match[str]") -> "_Word":
        text = _GENITIVE.sub("", found[0])
        return cls(text, found.start(), found.end(), fold(text))

    @property
    def is_capital(self) -> bool:
        return self.text[:1].isupper()


@dataclass(frozen=True, slots=True)
class _NameFinder:
    text: str
    words: tuple[_Word, ...]
    small: frozenset[str]
    """Words that the text writes with a small letter too, folded."""
    language: str

    @classmethod
    def of(cls, text: str) -> "_NameFinder":
        words = tuple(map(_Word.of, _WORD.finditer(text)))
        small = frozenset(one.folded for one in words if one.text[:1].islower())
        return cls(text, words, small, guess_languages(text).get("Latin", "en"))

    def find(self) -> Iterator[str]:
        for place, word in enumerate(self.words):
            if numbered := _NUMBERED.fullmatch(word.text):
                yield from self._find_numbered(word, numbered["name"])
            elif word.is_capital:
                parts = [
                    one for one in _CAPITAL_PART.findall(word.text) if self._is_name(place, one)
                ]
                yield from parts
                if word.text in parts and (number := self._find_number(place)):
                    yield f"{word.text} {number}"

    def _find_numbered(self, word: _Word, name: str) -> Iterator[str]:
        """Yield a name with the number that is written to it ("Zephyr-19"), and alone where it is a rare word."""
        if fold(name) in COUNTED or _is_known(name):
            return
        yield word.text
        if fold(name) not in self.small | OFFICE_WORDS and _is_rare(name):
            yield name

    def _find_number(self, place: int) -> str | None:
        after = self._neighbor(place, 1)
        return after.text if after is not None and after.text.isdecimal() else None

    def _is_name(self, place: int, word: str) -> bool:
        if len(word) < SHORTEST or _is_known(word):
            return False
        if self._is_announced(place, word):
            return True
        if fold(word) in self.small:
            return False
        if word.isupper():
            return len(word) > LONGEST_ACRONYM and not self._is_in_dictionary(word)
        return (
            not self._is_in_dictionary(word)
            or self._is_capital_by_choice(place, word)
            or self._is_bare_subject(place, word)
        )

    def _is_bare_subject(self, place: int, word: str) -> bool:
        """Return whether a sentence begins with a rare word for one thing and no article ("Falke startet im Mai.").

        What is not counted has no article either ("Schulung ist wichtig.").
        """
        behind, small = self._neighbor(place, 1), word.lower()
        verbs = VERBS_OF_ONE.get(self.language, ())
        if behind is None or behind.is_capital or behind.folded not in verbs:
            return False
        if not self._begins_sentence(place) or fold(word) in OFFICE_WORDS:
            return False
        if small.endswith(ABSTRACT_ENDINGS) or not _is_rare(word, self.language):
            return False
        return self.language != "de" or not _is_of_two_words(small)

    def _begins_sentence(self, place: int) -> bool:
        start = self.words[place].start
        return bool(_SENTENCE_START.search(self.text, max(0, start - _LOOKED_BACK), start))

    def _is_announced(self, place: int, word: str) -> bool:
        before = self._neighbor(place, -1)
        is_announced = before is not None and before.folded in ANNOUNCING
        return is_announced and fold(word) not in NOT_ANNOUNCED

    def _is_capital_by_choice(self, place: int, word: str) -> bool:
        """Return whether an ordinary word has a capital amid small ones, which neither grammar nor habit asks for."""
        if self.language == "de" or fold(word) in OFFICE_WORDS or not _is_rare(word):
            return False
        if self._begins_sentence(place):
            return False
        around = (self._neighbor(place, -1), self._neighbor(place, 1))
        capital = [one.text for one in around if one is not None and one.is_capital]
        # A first name and a surname; more capital words, or an ordinary one, are a heading.
        return not capital or (
            len(capital) == 1 and _is_rare(capital[0]) and fold(capital[0]) not in OFFICE_WORDS
        )

    def _neighbor(self, place: int, step: int) -> _Word | None:
        """Return the word before or behind one, where only a blank is between them."""
        other = place + step
        if not 0 <= other < len(self.words):
            return None
        first, second = sorted((place, other))
        gap = (self.words[first].end, self.words[second].start)
        return self.words[other] if _BLANK.fullmatch(self.text, *gap) else None

    def _is_in_dictionary(self, word: str) -> bool:
        small = word.lower()
        if small in load_vocabulary("en") or small in load_vocabulary(self.language):
            return True
        if fold(word) in OFFICE_WORDS:
            return True
        return self.language == "de" and is_ordinary_compound(small)


def _is_known(word: str) -> bool:
    return is_well_known(word) or fold(word) in _FUNCTION_WORDS


def _is_rare(word: str, language: str = "en") -> bool:
    most = FREQUENT_WORDS[language]
    return load_vocabulary(language).get(word.lower(), most) >= most


def _is_of_two_words(word: str) -> bool:
    """Return whether a German word is made of two that are ordinary."""
    ends = range(SHORTEST_HALF, len(word) - SHORTEST_HALF + 1)
    return any(_is_part(word[:end]) and any(map(_is_part, _strip_link(word[end:]))) for end in ends)


def _strip_link(half: str) -> Iterator[str]:
    """Yield the second half of a German word without each of what may join it."""
    for link in _LINKS:
        if half.startswith(link) and len(half) - len(link) >= SHORTEST_HALF:
            yield half[len(link) :]


@lru_cache(maxsize=1 << 12)
def is_ordinary_compound(word: str) -> bool:
    """Return whether a German word in small letters is made of ordinary words, and begins with no surname."""
    if len(word) > LONGEST_COMPOUND or word.startswith(COMMON_SURNAMES):
        return False
    ends = {0}
    for end in range(SHORTEST_PART, len(word) + 1):
        if any(_is_part(word[at:end]) for at in ends if end - at >= SHORTEST_PART):
            if end == len(word):
                return True
            ends |= {end + len(link) for link in _LINKS if word.startswith(link, end)}
    return False


def _is_part(word: str) -> bool:
    return word in load_vocabulary("de") or not _is_rare(word)
