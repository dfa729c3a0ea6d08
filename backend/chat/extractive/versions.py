"""Choose among the versions of a document: by the year that a question names, and by what is newer.

Of two documents that say different things on the same point, the one changed last is chosen; but if the question
names a year that only one of them mentions, that one, and if it asks about the past, the older one. A document
is valid from its date to that of its successor.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.search.document_versions import asks_about_the_past, without_version, years_in
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vectors

TIE = 0.12
"""Between scores that differ by no more, the version decides."""
SAME_POINT_COSINE = 0.85
SAME_HEADING_COSINE = 0.6
SAME_POINT_OVERLAP = 0.6
SAME_HEADING_OVERLAP = 0.2


def drop_superseded(
    question: str,
    read: Sequence[Candidate],
    scores: NDArray[np.float64],
    vectors: Vectors | None,
) -> list[int]:
    """Return the numbers of the best candidates, best first, without those of superseded versions.

    Args:
        vectors: of the candidates, unit rows; without them similarity is measured by words.
    """
    order = [int(i) for i in np.argsort(-scores, kind="stable")]
    near = [i for i in order if scores[i] >= scores[order[0]] - TIE]
    return [
        i
        for i in near
        if not any(
            _supersedes(question, read[j], read[i]) and _make_same_point(read, vectors, i, j)
            for j in near
        )
    ]


def _supersedes(question: str, one: Candidate, other: Candidate) -> bool:
    """Whether `one` is preferred to `other` if both make the same point."""
    if one.chunk.document_id == other.chunk.document_id:
        return False
    years = years_in(question)
    named, other_named = (len(years & _years_in(each)) for each in (one, other))
    if named != other_named:
        return named > other_named
    changed, other_changed = one.chunk.updated_at, other.chunk.updated_at
    if changed is None or other_changed is None or changed == other_changed:
        return False
    return (changed < other_changed) == asks_about_the_past(question)


def _years_in(candidate: Candidate) -> frozenset[str]:
    return years_in(f"{heading_context(candidate.chunk)} {candidate.text}")


def _make_same_point(read: Sequence[Candidate], vectors: Vectors | None, i: int, j: int) -> bool:
    """Whether two sentences make the same point; under the same headings less similarity is enough."""
    one, other = read[i], read[j]
    same_heading = bool(one.chunk.heading_path) and _location(one) == _location(other)
    if vectors is not None:
        least = SAME_HEADING_COSINE if same_heading else SAME_POINT_COSINE
        return float(vectors[i] @ vectors[j]) >= least
    both, either = len(one.words & other.words), len(one.words | other.words)
    return both >= (SAME_HEADING_OVERLAP if same_heading else SAME_POINT_OVERLAP) * either


def _location(candidate: Candidate) -> tuple[str, ...]:
    """Return title and headings without what distinguishes versions."""
    chunk = candidate.chunk
    return tuple(without_version(each) for each in (chunk.title, *chunk.heading_path))


def fits_years(question: str, candidate: Candidate, found: Sequence[Candidate]) -> bool:
    """Whether each year of the question stands in the candidate's chunk or headings, or in the time it is valid."""
    chunk = candidate.chunk
    held = years_in(f"{heading_context(chunk)} {chunk.embedded_text}")
    unknown = years_in(question) - held
    return not unknown or all(_is_valid_in(int(year), chunk, found) for year in unknown)


def _is_valid_in(year: int, chunk: Chunk, found: Sequence[Candidate]) -> bool:
    began = chunk.updated_at
    if began is None:
        return False
    title = without_version(chunk.title)
    later = [
        other.updated_at.year
        for other in {each.chunk.document_id: each.chunk for each in found}.values()
        if other.updated_at and other.updated_at > began and without_version(other.title) == title
    ]
    return began.year <= year <= min(later, default=year)
