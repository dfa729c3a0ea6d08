"""Keep out of web queries what only documents say that not everybody may read.

A model that has read internal documents writes the next web query, and a search engine is a stranger. Exact terms that stand
in private texts alone are removed, unless the asker wrote them. What is said in other words is not noticed.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import regex

from backend.chat.privacy.private_terms import (
    find_query_terms,
    find_terms,
    fold_character,
    fold_words,
    spell,
)
from connectors.document import Span
from indexing.text.normalization import LETTER, SPACELESS, fold
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.tokenizer import plain_words
from indexing.text.vocabulary import load_vocabulary

SHORT_TERM = 5
"""A term of fewer letters without a digit is one only as words of its own: it may be a part of any word."""
LONGEST_ENDING = 1
"""Characters of a plural."""
MAX_ROUNDS = 50
"""What is left after a removal may hold a term again."""

_WORD_CHARACTER = regex.compile(rf"(?V1){LETTER}")
_WORD = regex.compile(rf"(?V1){LETTER}++|[{SPACELESS}]++")
_LEFTOVERS = regex.compile(
    r"\"\s*\"|“\s*”|„\s*“|«\s*»|「\s*」|『\s*』|《\s*》|\(\s*\)|（\s*）|\b(?:site|inurl|intitle|filetype):(?=\s|$)"
    r"|(?<=\s|^)[\p{P}\p{S}]++(?=\s|$)"
)
_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())


@dataclass(frozen=True)
class TurnTexts:
    """What a turn has read, and what its asker wrote."""

    private: Sequence[str]
    """Of documents that `public` may not read."""
    public: Sequence[str]
    own: Sequence[str]
    """The asker's messages of the conversation."""

    @cached_property
    def private_terms(self) -> frozenset[str]:
        return frozenset[str]().union(*map(find_terms, self.private))

    @cached_property
    def own_words(self) -> frozenset[str]:
        return frozenset(word for text in self.own for word in plain_words(text))

    def find_terms_of(self, query: str) -> frozenset[str]:
        """Return what a query has in common with private texts that a reader of both would call a term."""
        return frozenset(filter(self._is_said_in_private, find_query_terms(query)))

    def is_private_alone(self, term: str) -> bool:
        as_word, anywhere = _word_pattern(term), _part_pattern(term)
        return not any(map(as_word.search, self._folded_public)) and not any(
            map(anywhere.search, self._folded_own)
        )

    def _is_said_in_private(self, term: str) -> bool:
        return any(map(_word_pattern(term).search, self._folded_private))

    @cached_property
    def _folded_private(self) -> list[str]:
        return _fold_spellings(self.private)

    @cached_property
    def _folded_public(self) -> list[str]:
        return _fold_spellings(self.public)

    @cached_property
    def _folded_own(self) -> list[str]:
        return _fold_spellings(self.own)


@dataclass(frozen=True, slots=True)
class AllowedQuery:
    text: str
    removed: tuple[str, ...] = ()
    """What was taken out, as it stood in the query."""


@dataclass(frozen=True, slots=True)
class RefusedQuery:
    """Nothing is left to search for."""

    removed: tuple[str, ...]


CheckedQuery: TypeAlias = AllowedQuery | RefusedQuery


def keep_private_terms_out(query: str, texts: TurnTexts) -> CheckedQuery:
    """Return a web query without the terms that are known from private texts alone."""
    left = unicodedata.normalize("NFC", query)
    terms = texts.private_terms | texts.find_terms_of(left)
    removed: dict[str, None] = {}
    for _ in range(MAX_ROUNDS):
        spans = _find_private_spans(left, terms, texts.is_private_alone)
        if not spans:
            return _finish(query, left, tuple(removed))
        removed |= dict.fromkeys(span.of(left) for span in spans)
        left = _remove(left, spans, texts.own_words)
    return RefusedQuery(tuple(removed))


def _finish(query: str, left: str, removed: tuple[str, ...]) -> CheckedQuery:
    if not removed:
        return AllowedQuery(query)
    if all(word in _FUNCTION_WORDS for word in plain_words(left)):
        return RefusedQuery(removed)
    return AllowedQuery(left, removed)


@dataclass(frozen=True, slots=True)
class _Letters:
    """The letters of a query, each with the place of its character."""

    text: str
    letters: str
    places: Sequence[int]

    @classmethod
    def of(cls, text: str) -> "_Letters":
        found = [(one, place) for place, each in enumerate(text) for one in fold_character(each)]
        return cls(text, "".join(one for one, _ in found), [place for _, place in found])

    def find(self, term: str) -> Iterator[Span]:
        """Yield where a term stands, in whole words of the text; places that overlap are found in the next round."""
        start = self.letters.find(term)
        while start >= 0:
            end = start + len(term)
            is_part = self._cuts(start, term) or self._cuts(end, term)
            span = Span(self.places[start], self.places[end - 1] + 1)
            if not is_part and not self._is_in_ordinary_word(span):
                yield self._whole_words(span)
            start = self.letters.find(term, start + 1 if is_part else end)

    def _cuts(self, at: int, term: str) -> bool:
        """Return whether a term that begins or ends here is a part of a number, or a short one a part of a word."""
        if not 0 < at < len(self.letters) or self.places[at] - self.places[at - 1] > 1:
            return False
        before, after = self.letters[at - 1], self.letters[at]
        if before.isdigit() and after.isdigit():
            return True
        is_short = len(term) < SHORT_TERM and term.isalpha()
        return is_short and _is_word_character(before) and _is_word_character(after)

    def _is_in_ordinary_word(self, span: Span) -> bool:
        """Return whether a place is only a part of an English word, such as "falconry", and that no plural of it."""
        whole = self._whole_words(span)
        is_longer = whole.end - whole.start > span.end - span.start + LONGEST_ENDING
        return is_longer and whole.of(self.text).lower() in load_vocabulary("en")

    def _whole_words(self, span: Span) -> Span:
        start, end = span.start, span.end
        while start and self._joins(start):
            start -= 1
        while end < len(self.text) and self._joins(end):
            end += 1
        return Span(start, end)

    def _joins(self, at: int) -> bool:
        return _is_word_character(self.text[at - 1]) and _is_word_character(self.text[at])


def _is_word_character(character: str) -> bool:
    return _WORD_CHARACTER.match(character) is not None


def _find_private_spans(
    query: str, terms: Iterable[str], is_private: Callable[[str], bool]
) -> list[Span]:
    """Return the places of private terms in order; those that overlap are one."""
    letters = _Letters.of(query)
    spans = [
        span
        for term in terms
        if term in letters.letters and is_private(term)
        for span in letters.find(term)
    ]
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _remove(query: str, spans: Iterable[Span], own_words: frozenset[str]) -> str:
    """Remove places from a query, but for words of the asker, unless each word there is one."""
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += (query[end : span.start], *_list_own_words(span.of(query), own_words))
        end = span.end
    left = " ".join((*pieces, query[end:]))
    return " ".join(_LEFTOVERS.sub(" ", left).split())


def _list_own_words(removed: str, own_words: frozenset[str]) -> list[str]:
    found = _WORD.findall(removed)
    own = [word for word in found if fold(word) in own_words]
    return own if len(own) < len(found) else []


def _fold_spellings(texts: Iterable[str]) -> list[str]:
    return [fold_words(spelled) for text in texts for spelled in spell(text)]


def _word_pattern(term: str) -> regex.Pattern[str]:
    """Find a term that is not a part of another word."""
    before = rf"(?<!{LETTER})" if _is_word_character(term[0]) else ""
    after = rf"(?!{LETTER})" if _is_word_character(term[-1]) else ""
    return regex.compile(f"(?V1){before}{_spread(term)}{after}")


def _part_pattern(term: str) -> regex.Pattern[str]:
    """Find a term anywhere but in a longer number."""
    before = r"(?<!\d)" if term[0].isdigit() else ""
    after = r"(?!\d)" if term[-1].isdigit() else ""
    return regex.compile(f"{before}{_spread(term)}{after}")


def _spread(term: str) -> str:
    return " *+".join(map(regex.escape, term))
