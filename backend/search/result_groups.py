"""Group the sections that a search has found by the document that they are of."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from backend.search.models import DocumentNumbers, InferenceSection, SearchDoc, SearchRequest
from backend.search.retrieval import HITS_PER_VARIANT
from backend.search.search_tool import Ranking, SearchTool

WIDER = 4
"""So many times as many passages are retrieved where those of few documents took all places."""


class Grouping(StrEnum):
    """What one result is."""

    PASSAGE = "passage"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class SectionGroup:
    """One result: a section, with the further ones of its document where results are grouped."""

    best: InferenceSection
    further: tuple[InferenceSection, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupedRanking:
    ranking: Ranking
    groups: tuple[SectionGroup, ...]
    """Best first, at most as many as asked for."""
    more: bool
    """There may be further groups."""

    @property
    def docs(self) -> list[SearchDoc]:
        """The groups as programs and terminals show them, numbered by document."""
        numbers = DocumentNumbers()
        return [_to_doc(group, numbers) for group in self.groups]


def find_grouped(
    tool: SearchTool, request: SearchRequest, limit: int, grouping: Grouping
) -> GroupedRanking:
    """Return the best `limit` passages, or the best `limit` documents with all their retrieved passages.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    ranking = tool.rank(request, limit)
    if grouping is Grouping.PASSAGE:
        groups = tuple(map(SectionGroup, ranking.sections))
        return GroupedRanking(ranking, groups[:limit], len(groups) > limit)
    groups = group_by_document(ranking.sections)
    retrieved = max(limit, HITS_PER_VARIANT)
    if len(groups) < limit and len(ranking.hits) >= retrieved:
        retrieved *= WIDER
        ranking = tool.rank(request, retrieved)
        groups = group_by_document(ranking.sections)
    more = len(groups) > limit or len(ranking.hits) >= retrieved
    return GroupedRanking(ranking, groups[:limit], more)


def group_by_document(sections: Iterable[InferenceSection]) -> tuple[SectionGroup, ...]:
    """Rank each document by the best of its sections; `sections` are best first."""
    groups: dict[str, SectionGroup] = {}
    for section in sections:
        group = groups.get(section.document_id)
        groups[section.document_id] = (
            replace(group, further=(*group.further, section)) if group else SectionGroup(section)
        )
    return tuple(groups.values())


def _to_doc(group: SectionGroup, numbers: DocumentNumbers) -> SearchDoc:
    number = numbers.assign(group.best.document_id)
    further = tuple(SearchDoc.from_section(one, number) for one in group.further)
    return replace(SearchDoc.from_section(group.best, number), further=further)
