"""Pair the chunks of an answer with those of its sources: the most alike first, each at most once.

A block of the answer is compared with all sources at a time, so that memory does not grow with their numbers multiplied, and
the deadline is looked at between blocks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from connectors.document import Span
from indexing.embedding.embedder import Vectors
from indexing.runtime.deadline import Deadline

MOST_REFERENCES = 10
BLOCK_VALUES = 1 << 22
"""Of a matrix that is held at once: 16 MB."""

Scores: TypeAlias = NDArray[np.float32]
"""Shape (answer chunks, source chunks)."""
Words: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Match:
    """A chunk of an answer and one of a source, by their numbers, and how alike they are."""

    answer: int
    source: int
    score: float


def match_vectors(
    answers: Vectors, sources: Vectors, least: float, deadline: Deadline
) -> list[Match]:
    """Return pairs with a cosine of at least `least`: of each answer chunk its best.

    Raises:
        DeadlineExceededError: the time was too short.
    """

    def compare(block: Span) -> Scores:
        scores: Scores = answers[block.start : block.end] @ sources.T
        return scores

    return list(_find_best(compare, _Shape(len(answers), len(sources)), least, deadline))


def match_words(
    answers: Sequence[Words], sources: Sequence[Words], least: float, deadline: Deadline
) -> list[Match]:
    """Return pairs whose words have a Jaccard index of at least `least`: of each answer chunk its best.

    Raises:
        DeadlineExceededError: the time was too short.
    """
    index = _WordIndex(
        postings=_list_postings(sources, frozenset[str]().union(*answers)),
        sizes=np.array([len(words) for words in sources], np.float32),
    )

    def compare(block: Span) -> Scores:
        return np.stack([index.rate(words) for words in answers[block.start : block.end]])

    return list(_find_best(compare, _Shape(len(answers), len(sources)), least, deadline))


@dataclass(frozen=True, slots=True)
class _WordIndex:
    """Which sources hold a word: that most pairs of chunks have no word in common costs nothing."""

    postings: Mapping[str, NDArray[np.intp]]
    sizes: Scores
    """How many words each source has."""

    def rate(self, words: Words) -> Scores:
        """Return the Jaccard index of these words and those of each source."""
        holders = [self.postings[word] for word in words if word in self.postings]
        found = np.concatenate([np.empty(0, np.intp), *holders])
        common = np.bincount(found, minlength=len(self.sizes)).astype(np.float32)
        scores: Scores = common / np.maximum(len(words) + self.sizes - common, 1)
        return scores


def _list_postings(sources: Sequence[Words], vocabulary: Words) -> Mapping[str, NDArray[np.intp]]:
    postings: defaultdict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(sources):
        for word in words & vocabulary:
            postings[word].append(at)
    return {word: np.array(holders, np.intp) for word, holders in postings.items()}


@dataclass(frozen=True, slots=True)
class _Shape:
    answers: int
    sources: int

    def blocks(self) -> Iterator[Span]:
        """Yield ranges of the answer."""
        height = max(1, BLOCK_VALUES // max(self.sources, 1))
        for start in range(0, self.answers if self.sources else 0, height):
            yield Span(start, min(start + height, self.answers))


def _find_best(
    compare: Callable[[Span], Scores], shape: _Shape, least: float, deadline: Deadline
) -> Iterator[Match]:
    """Yield what `choose_matches` may need: of each answer chunk the best."""
    for block in shape.blocks():
        deadline.check()
        yield from _take_best(compare(block), block.start, least)


def _take_best(scores: Scores, start: int, least: float) -> Iterator[Match]:
    """Yield the best of each row; only what is enough alike is put in an order, which is little."""
    for row in np.flatnonzero(scores.max(axis=1) >= least):
        sources = np.flatnonzero(scores[row] >= least)
        if len(sources) > MOST_REFERENCES:
            best = np.argpartition(scores[row, sources], -MOST_REFERENCES)[-MOST_REFERENCES:]
            sources = sources[best]
        for source in sources:
            yield Match(start + int(row), int(source), float(scores[row, source]))


def choose_matches(matches: Iterable[Match], most: int = MOST_REFERENCES) -> list[Match]:
    """Choose pairs, the best first and each chunk once; in the order of the answer."""
    chosen: list[Match] = []
    answers, sources = set[int](), set[int]()
    for match in sorted(matches, key=lambda one: (-one.score, one.answer, one.source)):
        if len(chosen) == most:
            break
        if match.answer not in answers and match.source not in sources:
            chosen.append(match)
            answers.add(match.answer)
            sources.add(match.source)
    return sorted(chosen, key=lambda one: one.answer)
