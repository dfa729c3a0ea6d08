"""Compares the results of two indexes of the same chunks for the same queries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from connectors.access import Readers
from indexing.index.protocols import Hit, Index, IndexQuery
from indexing.runtime.deadline import Deadline

TOP = 10
LEGS = ("keyword", "vector", "hybrid")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of one query."""

    overlap: float
    """Share of the best ten of the one that are among the best ten of the other, except ties."""
    one: tuple[Hit, ...]
    other: tuple[Hit, ...]


def restrict_to_leg(query: IndexQuery, leg: str) -> IndexQuery:
    """Return the query for this leg only, or for both."""
    match leg:
        case "keyword":
            return replace(query, vector=None, alpha=0.0, exact=())
        case "vector":
            return replace(query, alpha=1.0, exact=())
        case _:
            return query


def compare_rankings(
    one: Index, other: Index, queries: Sequence[IndexQuery], readers: Readers
) -> list[Comparison]:
    found = []
    for query in queries:
        (mine,) = one.find([query], readers, Deadline.after(60)).rankings
        (theirs,) = other.find([query], readers, Deadline.after(60)).rankings
        found.append(Comparison(_overlap(mine, theirs), mine, theirs))
    return found


def average_overlap(found: Iterable[Comparison]) -> float:
    """Return the average overlap."""
    return float(np.mean([each.overlap for each in found]))


def _overlap(one: Sequence[Hit], other: Sequence[Hit]) -> float:
    best = {hit.chunk.key for hit in one[:TOP]}
    if not best:
        return 1.0 if not other else 0.0
    # The order of equal scores is not defined.
    last = other[min(TOP, len(other)) - 1].score if other else 0.0
    theirs = {hit.chunk.key for hit in other if hit.score >= last * (1 - 1e-6)}
    return len(best & theirs) / len(best)
