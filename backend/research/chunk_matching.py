"""Pair the chunks of an answer with those of its sources: the most alike first, each at most once.

All of an answer is compared with a block of the sources at a time, by one matrix product, so that memory does not grow
with the number of sources.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from connectors.document import Span
from indexing.embedding.embedder import Vectors

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


def match_vectors(answers: Vectors, sources: Vectors, least: float) -> list[Match]:
    """Return pairs with a cosine of at least `least`: of each answer chunk its best."""
    return list(
        _find_best(
            lambda block: answers @ sources[block.start : block.end].T,
            _Shape(len(answers), len(sources)),
            least,
        )
    )


def match_words(answers: Sequence[Words], sources: Sequence[Words], least: float) -> list[Match]:
    """Return pairs whose words have a Jaccard index of at least `least`: of each answer chunk its best."""
    vocabulary = {word: at for at, word in enumerate(frozenset[str]().union(*answers))}
    held = _mark_words(answers, vocabulary)
    sizes = np.array([len(words) for words in answers], np.float32)[:, None]

    def compare(block: Span) -> Scores:
        compared = sources[block.start : block.end]
        common = held @ _mark_words(compared, vocabulary).T
        others = np.array([len(words) for words in compared], np.float32)
        either = np.maximum(sizes + others - common, 1)
        scores: Scores = (common / either).astype(np.float32, copy=False)
        return scores

    shape = _Shape(len(answers), len(sources), max(1, len(vocabulary)))
    return list(_find_best(compare, shape, least))


def _mark_words(texts: Sequence[Words], vocabulary: Mapping[str, int]) -> Scores:
    marks = np.zeros((len(texts), len(vocabulary)), np.float32)
    for row, words in zip(marks, texts, strict=True):
        row[[vocabulary[word] for word in words if word in vocabulary]] = 1
    return marks


@dataclass(frozen=True, slots=True)
class _Shape:
    answers: int
    sources: int
    features: int = 1
    """Numbers that are made anew for each source chunk."""

    def blocks(self) -> Iterator[Span]:
        width = max(1, BLOCK_VALUES // max(self.answers, self.features, 1))
        for start in range(0, self.sources if self.answers else 0, width):
            yield Span(start, min(start + width, self.sources))


def _find_best(compare: Callable[[Span], Scores], shape: _Shape, least: float) -> Iterator[Match]:
    """Yield what `choose_matches` may need: of each answer chunk the best of every block."""
    for block in shape.blocks():
        scores = compare(block)
        rows = np.flatnonzero(scores.max(axis=1) >= least)
        if len(rows):
            yield from _take_best(scores[rows], rows, block, least)


def _take_best(
    scores: Scores, rows: NDArray[np.intp], block: Span, least: float
) -> Iterator[Match]:
    if scores.shape[1] > MOST_REFERENCES:
        columns = np.argpartition(scores, -MOST_REFERENCES, axis=1)[:, -MOST_REFERENCES:]
    else:
        columns = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    best = np.take_along_axis(scores, columns, axis=1)
    for row, place in np.argwhere(best >= least):
        yield Match(int(rows[row]), block.start + int(columns[row, place]), float(best[row, place]))


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
