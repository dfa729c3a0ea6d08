"""Find, for a word that no readable document contains, the nearest words that one contains.

Both engines look up near words among the passages that the asker may read, so a suggestion, or its absence,
says nothing about others. What they find is compared here: by the optimal string alignment distance, in which a
transposition counts once (Damerau, "A technique for computer detection and correction of spelling errors", 1964).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Protocol, TypeAlias

import regex

from indexing.text.normalization import LETTER, SPACELESS, fold
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.tokenizer import find_exact_terms, plain_words, plain_words_around

SHORTEST_WORD = 4
"""Of words that are completed or joined."""
SHORTEST_MISSPELLED = 6
"""Of words that may differ: of shorter ones that no document contains, nearly all are correct words, and similar to others."""
LONG_WORD = 8
"""From this length on a word may differ in two places."""
SHORTEST_PART = 3
"""Of a word that was written as one and is two."""
MAX_WORDS = 12
"""Words of one query that are looked up."""
MAX_CANDIDATES = 3
EXAMINED = 20
"""Passages whose words are compared with a word."""

Inflections: TypeAlias = Callable[[str], Sequence[str]]
Corrections: TypeAlias = Mapping[str, tuple[str, ...]]
"""Of each unknown word, what it may have been meant to be, the nearest first: words, or two words for one."""

_LETTERS = regex.compile(rf"(?V1)[\p{{L}}\p{{M}}--[{SPACELESS}]]++")
_STOP_WORDS = frozenset().union(*FUNCTION_WORDS.values())


@dataclass(frozen=True, slots=True)
class SpellingQuery:
    words: tuple[str, ...]
    """To be looked up, folded, in their order."""
    prefix: str | None
    """The last of them, where it ends the query and may be unfinished."""


@dataclass(frozen=True, slots=True)
class NearWord:
    word: str
    distance: int


@dataclass(frozen=True, slots=True)
class WordPrefix:
    prefix: str


@dataclass(frozen=True, slots=True)
class AnyPair:
    pairs: tuple[tuple[str, str], ...]


PassageLookup: TypeAlias = NearWord | WordPrefix | AnyPair
"""Passages with a word at most so far from another, with a word that begins so, or with both words of some pair,
in any inflection."""


class PassageWords(Protocol):
    """The words of the passages that one asker may read."""

    def inflections(self, word: str) -> Sequence[str]:
        """Return the forms under which the index may contain a word, in the languages of the passages."""
        ...

    def find_known(self, words: Sequence[str]) -> frozenset[str]:
        """Return those words that some passage contains, in any inflection."""
        ...

    def read_texts(self, lookups: Sequence[PassageLookup]) -> list[list[str]]:
        """Return for each lookup the texts of at most `EXAMINED` passages."""
        ...


def suggest_corrections(query: SpellingQuery, passages: PassageWords) -> Corrections:
    """Return each unknown word with what it may have been meant to be, if anything is near."""
    known = passages.find_known(query.words)
    unknown = [word for word in query.words if word not in known]
    if not unknown:
        return {}
    corrections = _join_neighbors(query, unknown, passages)
    joined = {part for words in corrections for part in words.split()}
    return corrections | _look_up([word for word in unknown if word not in joined], query, passages)


def _look_up(
    words: Sequence[str], query: SpellingQuery, passages: PassageWords
) -> dict[str, tuple[str, ...]]:
    """Take step after step with all words, each until a step has found something."""
    steps = {word: _lookup_steps(word, query) for word in words}
    found: dict[str, tuple[str, ...]] = {}
    while left := {word: some for word, some in steps.items() if some and word not in found}:
        found |= _take_first_step(left, passages)
        steps = {word: some[1:] for word, some in left.items()}
    return found


def _take_first_step(
    steps: Mapping[str, Sequence[Sequence[PassageLookup]]], passages: PassageWords
) -> dict[str, tuple[str, ...]]:
    lookups = [(word, lookup) for word, (first, *_) in steps.items() for lookup in first]
    texts = passages.read_texts([lookup for _, lookup in lookups])
    found: dict[str, list[str]] = {}
    for (word, lookup), of_lookup in zip(lookups, texts, strict=True):
        candidates = _candidates(lookup, of_lookup, passages.inflections)
        found.setdefault(word, []).extend(candidates)
    return {
        word: tuple(dict.fromkeys(some))[:MAX_CANDIDATES] for word, some in found.items() if some
    }


def _join_neighbors(
    query: SpellingQuery, unknown: Collection[str], passages: PassageWords
) -> dict[str, tuple[str, ...]]:
    """Return neighboring words that are one word when they are joined, where one of them is unknown."""
    pairs = {
        one + other: f"{one} {other}"
        for one, other in pairwise(query.words)
        if one in unknown or other in unknown
    }
    known = passages.find_known(tuple(pairs)) if pairs else frozenset()
    return {pair: (word,) for word, pair in pairs.items() if word in known}


def _lookup_steps(word: str, query: SpellingQuery) -> list[list[PassageLookup]]:
    """Return what to look up for an unknown word; a step is taken where those before it found nothing.

    Two places take ten times as long as one, and four of five misspelled words differ in one place only.
    """
    near: list[PassageLookup] = [
        NearWord(word, distance) for distance in range(1, edit_limit(word) + 1)
    ]
    other: list[PassageLookup] = []
    if near and (splits := split_word(word)):
        other.append(AnyPair(tuple(splits)))
    if word == query.prefix:
        other.append(WordPrefix(word))
    return [step for step in (near[:1], other, near[1:]) if step]


def _candidates(
    lookup: PassageLookup, texts: Sequence[str], inflections: Inflections
) -> tuple[str, ...]:
    match lookup:
        case NearWord(word, distance):
            return nearest_words(word, distance, texts)
        case WordPrefix(prefix):
            return complete_prefix(prefix, texts)
        case AnyPair(pairs):
            return find_neighbors(pairs, texts, inflections)


def spelling_query(message: str) -> SpellingQuery:
    """Select the words of a message that may be misspelled.

    Codes, numbers, quoted words, function words, short words and scripts without spaces never are.
    """
    rest = message
    for term in find_exact_terms(message):
        rest = rest.replace(term, " \N{WHITE SQUARE} ")
    last = fold(rest).rstrip()
    found = [word for word in dict.fromkeys(plain_words(rest)) if _is_correctable(word)]
    selected = tuple(found[:MAX_WORDS])
    is_last = bool(selected) and last.endswith(selected[-1])
    return SpellingQuery(selected, selected[-1] if is_last else None)


def _is_correctable(word: str) -> bool:
    return len(word) >= SHORTEST_WORD and word not in _STOP_WORDS and _consists_of_letters(word)


def _consists_of_letters(word: str) -> bool:
    if word.isascii():
        return word.isalpha()
    return _LETTERS.fullmatch(word, concurrent=False) is not None


def edit_limit(word: str) -> int:
    """Return in how many places a word may differ from what was meant."""
    if len(word) < SHORTEST_MISSPELLED:
        return 0
    return 1 if len(word) < LONG_WORD else 2


def split_word(word: str) -> list[tuple[str, str]]:
    """Return all ways to write a word as two."""
    places = range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)
    return [(word[:place], word[place:]) for place in places]


def nearest_words(word: str, limit: int, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of some texts that differ from `word` in at most `limit` places, the nearest first."""
    passages = (_words_that_may_be_near(word, limit, text) for text in texts)
    counts = Counter(chain.from_iterable(passages))
    distances = {
        found: distance
        for found in counts
        if (distance := edit_distance(word, found, limit)) is not None
    }
    return tuple(sorted(distances, key=lambda found: (distances[found], -counts[found], found)))[
        :MAX_CANDIDATES
    ]


def _words_that_may_be_near(word: str, limit: int, text: str) -> set[str]:
    """Return the words of a text without most of those that differ in more places, which take long to compare."""
    # One place, or two that change places, cannot be in the first part and in the last.
    part = (len(word) - 1) // 2
    first, last = word[:part], word[part + 1 :]
    if limit > 1 or not first:
        return set(plain_words(text))
    around = plain_words_around(text, (first, last))
    return {found for found in around if found.startswith(first) or found.endswith(last)}


def complete_prefix(prefix: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the most frequent words of some texts that begin with `prefix`."""
    counts = Counter(
        found for text in texts for found in set(plain_words(text)) if found.startswith(prefix)
    )
    ordered = sorted(counts, key=lambda found: (-counts[found], len(found), found))
    return tuple(ordered)[:MAX_CANDIDATES]


def find_neighbors(
    pairs: Sequence[tuple[str, str]], texts: Iterable[str], inflections: Inflections
) -> tuple[str, ...]:
    """Return the pairs whose words follow one another in some texts, in any inflection; the most frequent first."""
    forms = cache(lambda word: frozenset(inflections(word)))
    counts = Counter(
        pair
        for text in texts
        for one, other in set(pairwise(plain_words(text)))
        for pair in pairs
        if one[0] == pair[0][0]
        and other[0] == pair[1][0]
        and forms(one) & forms(pair[0])
        and forms(other) & forms(pair[1])
    )
    return tuple(" ".join(pair) for pair, _ in counts.most_common(MAX_CANDIDATES))


def edit_distance(one: str, other: str, limit: int) -> int | None:
    """Return the optimal string alignment distance of two words; None if it is greater than `limit`."""
    if abs(len(one) - len(other)) > limit or len(set(one) ^ set(other)) > 2 * limit:
        return None
    one, other = _without_equal_ends(one, other)
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        following = [row]
        for column, against in enumerate(other, 1):
            cost = min(
                last[column] + 1,
                following[column - 1] + 1,
                last[column - 1] + (letter != against),
            )
            if row > 1 and column > 1 and (letter, one[row - 2]) == (other[column - 2], against):
                cost = min(cost, before[column - 2] + 1)
            following.append(cost)
        before, last = last, following
        if min(last) > limit and min(before) > limit:
            return None
    return last[-1] if last[-1] <= limit else None


def _without_equal_ends(one: str, other: str) -> tuple[str, str]:
    """Leave out the letters that two words have in common at both ends, where nothing need be compared."""
    start = _count_equal(one, other)
    one, other = one[start:], other[start:]
    end = _count_equal(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _count_equal(one: str, other: str) -> int:
    """Return how many letters two words have in common from the beginning."""
    for count, (letter, against) in enumerate(zip(one, other, strict=False)):
        if letter != against:
            return count
    return min(len(one), len(other))


def correct_message(message: str, corrections: Corrections) -> str:
    """Replace what is unknown in a message by what is nearest to it."""
    nearest = {unknown: candidates[0] for unknown, candidates in corrections.items()}
    for pair in (unknown for unknown in nearest if " " in unknown):
        message = _pattern(pair).sub(nearest[pair], message)
    return _LETTERS.sub(lambda word: nearest.get(fold(word[0]), word[0]), message)


def _pattern(words: str) -> regex.Pattern[str]:
    """Match words as they may be written, with anything but letters between them."""
    parts = r"[^\p{L}\p{N}]+".join(map(regex.escape, words.split()))
    return regex.compile(rf"(?V1)(?<!{LETTER}){parts}(?!{LETTER})", regex.IGNORECASE)
