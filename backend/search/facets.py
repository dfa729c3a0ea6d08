"""Count the documents that an asker could narrow a search to.

Without a query, the index counts all documents that the asker may read. With one, the documents among the
passages that the search has retrieved are counted, at least 50 of each variant of the query: no aggregation
over the index, so that the cost depends on the length of the ranking, not on the number of documents.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from backend.search.models import SearchRequest
from backend.search.search_tool import Ranking, SearchTool
from connectors.access import Readers
from connectors.document import Person
from indexing.index.person_keys import PersonCount, count_people, names_by_key
from indexing.index.protocols import DateRange, Facets, Filters, Hit, Index
from indexing.runtime.deadline import Deadline

MOST_PEOPLE = 200
"""A company's mail has thousands of authors: too many to choose from."""

_Count: TypeAlias = Callable[[Filters], Facets]


def count_facets(index: Index, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
    """Count all documents, each field under the filters of all the others, so that another choice can be offered.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    return _count_each_field(filters, lambda each: index.facets(each, readers, deadline))


def count_found(tool: SearchTool, request: SearchRequest, ranking: Ranking, limit: int) -> Facets:
    """Count the documents of `ranking`, each field as it would be without its own filter.

    Each filtered field costs one more search, an unfiltered search none.

    Args:
        ranking: what `tool.rank(request, limit)` returned.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """

    def count(filters: Filters) -> Facets:
        if filters == request.filters:
            return count_hits(ranking.hits)
        return count_hits(tool.rank(replace(request, filters=filters), limit).hits)

    return _count_each_field(request.filters, count)


def count_hits(hits: Iterable[Hit]) -> Facets:
    """Count the documents that some passages are of."""
    found = list({hit.chunk.document_id: hit.chunk for hit in hits}.values())
    return Facets(
        sources=Counter(chunk.source for chunk in found),
        media_types=Counter(chunk.media_type for chunk in found),
        people=_count_owners([chunk.owners for chunk in found]),
        months=Counter(_month(chunk.updated_at) for chunk in found if chunk.updated_at),
        sets=Counter(name for chunk in found for name in chunk.sets),
    )


def _count_owners(owners: Sequence[Iterable[Person]]) -> dict[str, PersonCount]:
    """Count the documents of each person."""
    named = Counter(pair for each in owners for pair in names_by_key(each).items())
    totals = Counter[str]()
    for (key, _), count in named.items():
        totals[key] += count
    return count_people(totals, ((key, name, count) for (key, name), count in named.items()))


def _month(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()[: len("2026-11")]


def _count_each_field(filters: Filters, count_under: _Count) -> Facets:
    counts: dict[Filters, Facets] = {}

    def count(filters: Filters) -> Facets:
        if filters not in counts:
            counts[filters] = count_under(filters)
        return counts[filters]

    return Facets(
        sources=count(replace(filters, sources=None)).sources,
        media_types=count(replace(filters, media_types=None)).media_types,
        people=_rank_people(filters, count),
        months=count(replace(filters, updated=DateRange())).months,
        sets=count(replace(filters, sets=None)).sets,
    )


def _rank_people(filters: Filters, count: _Count) -> dict[str, PersonCount]:
    """Rank people by their documents, equals by name; keep those with most, and whoever is chosen."""
    chosen = filters.people or frozenset()
    counts = dict(count(replace(filters, people=None)).people)
    if not chosen <= counts.keys():
        # Not all people are counted: under the filter the chosen are.
        counts |= {key: one for key, one in count(filters).people.items() if key in chosen}
    ranked = sorted(counts.items(), key=lambda item: (-item[1].documents, item[1].name, item[0]))
    return dict(each for rank, each in enumerate(ranked) if rank < MOST_PEOPLE or each[0] in chosen)
