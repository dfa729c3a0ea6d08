"""Count the documents that an asker could narrow a search to."""

from collections.abc import Callable
from dataclasses import replace

from connectors.access import Readers
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import DateRange, Facets, Filters, Index
from indexing.runtime.deadline import Deadline

MOST_PEOPLE = 200
"""A company's mail names thousands, and nobody chooses from a list of these."""


def count_facets(index: Index, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
    """Count each field under the filters of all the others, so that another choice can be offered.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    counts: dict[Filters, Facets] = {}

    def count(filters: Filters) -> Facets:
        if filters not in counts:
            counts[filters] = index.facets(filters, readers, deadline)
        return counts[filters]

    return Facets(
        sources=count(replace(filters, sources=None)).sources,
        media_types=count(replace(filters, media_types=None)).media_types,
        people=_rank_people(filters, count),
        months=count(replace(filters, updated=DateRange())).months,
    )


def _rank_people(filters: Filters, count: Callable[[Filters], Facets]) -> dict[str, PersonCount]:
    """Those with most documents, equals by name, and whoever is chosen."""
    chosen = filters.people or frozenset()
    counts = dict(count(replace(filters, people=None)).people)
    if not chosen <= counts.keys():
        # The index counts those with most documents only; under the filter the chosen are among these.
        counts |= {key: one for key, one in count(filters).people.items() if key in chosen}
    ranked = sorted(counts.items(), key=lambda item: (-item[1].documents, item[1].name, item[0]))
    return dict(each for rank, each in enumerate(ranked) if rank < MOST_PEOPLE or each[0] in chosen)
