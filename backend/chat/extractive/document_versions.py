"""Of two documents that say the same of one thing, which to believe.

The newer one, by the day it was last changed; but where the question names a year that only one of
them bears, that one, and where it asks for what was, the older.
"""

from collections.abc import Sequence

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, context
from indexing.embedding.embedder import Vectors
from indexing.text.normalization import fold

TIE = 0.12
"""Scores that differ by no more are near: then the version decides."""
ALIKE_MEANING = 0.85
ALIKE_MEANING_IN_PLACE = 0.6
ALIKE_WORDS = 0.6
ALIKE_WORDS_IN_PLACE = 0.2

_YEAR = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_PAST = regex.compile(
    fold(
        r"\b(?:old|older|former|formerly|previous|previously|earlier|superseded|used to"
        r"|alte[mnrs]?|frühere?[mnrs]?|früher|bisherige?[mnrs]?|damals)\b|旧|以前|之前|过去|原来|昔"
    )
)
_VERSION = regex.compile(
    r"[\d.]+|\b(?:v|version|rev|revision|old|new|draft|final|copy|alt|neu)\b|旧|新|版"
)


def newest_first(
    question: str,
    read: Sequence[Candidate],
    scores: NDArray[np.float64],
    vectors: Vectors | None,
) -> list[int]:
    """The numbers of the best candidates, best first, without those that another version overrules.

    Args:
        vectors: of the candidates, unit rows; without them likeness is judged by words.
    """
    order = [int(i) for i in np.argsort(-scores, kind="stable")]
    near = [i for i in order if scores[i] >= scores[order[0]] - TIE]
    return [
        i
        for i in near
        if not any(
            _overrules(question, read[j], read[i]) and _same_point(read, vectors, i, j)
            for j in near
        )
    ]


def _overrules(question: str, one: Candidate, other: Candidate) -> bool:
    """Whether, if they say the same, `one` is to be believed rather than `other`."""
    if one.chunk.document_id == other.chunk.document_id:
        return False
    years = frozenset(_YEAR.findall(question))
    borne, other_borne = (len(years & _years_of(each)) for each in (one, other))
    if borne != other_borne:
        return borne > other_borne
    changed, other_changed = one.chunk.updated_at, other.chunk.updated_at
    if changed is None or other_changed is None or changed == other_changed:
        return False
    return (changed < other_changed) == (_PAST.search(fold(question)) is not None)


def _years_of(candidate: Candidate) -> frozenset[str]:
    return frozenset(_YEAR.findall(f"{context(candidate.chunk)} {candidate.text}"))


def _same_point(read: Sequence[Candidate], vectors: Vectors | None, i: int, j: int) -> bool:
    """Whether two sentences speak of the same: less likeness will do under the same headings."""
    one, other = read[i], read[j]
    same_place = bool(one.chunk.heading_path) and _place(one) == _place(other)
    if vectors is not None:
        least = ALIKE_MEANING_IN_PLACE if same_place else ALIKE_MEANING
        return float(vectors[i] @ vectors[j]) >= least
    both, either = len(one.words & other.words), len(one.words | other.words)
    return both >= (ALIKE_WORDS_IN_PLACE if same_place else ALIKE_WORDS) * either


def _place(candidate: Candidate) -> tuple[str, ...]:
    """Title and headings without what tells versions apart."""
    chunk = candidate.chunk
    return tuple(
        " ".join(_VERSION.sub(" ", fold(each)).split()).strip("() ")
        for each in (chunk.title, *chunk.heading_path)
    )
