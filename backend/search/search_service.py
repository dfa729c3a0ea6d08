"""Search for a person: from what was typed to a request, with its filters and corrections, and to grouped results."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from backend.search.inferred_filters import FilterInference
from backend.search.llm_protocol import Complete
from backend.search.models import (
    EVERY_KIND,
    Budgets,
    DocumentNumbers,
    FilterKind,
    InferenceSection,
    SearchDoc,
    SearchRequest,
    Spelling,
    make_request,
)
from backend.search.person_lookup import resolve_people
from backend.search.query_syntax import OperatorKind, ParsedQuery, correct_request
from backend.search.retrieval import HITS_PER_VARIANT
from backend.search.search_tool import Ranking, SearchTool
from connectors.access import Readers
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import CancelToken, Deadline

WIDER = 4
"""So many times as many passages are retrieved where those of few documents took all places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchService:
    """Searches raise DeadlineExceededError, TemporarilyUnavailableError or ActionRequiredError where the
    index does not answer."""

    index: Index
    tool: Callable[[Complete | None, DocumentNumbers], SearchTool]
    """Makes what searches for one turn, with the language model if there is one."""
    budgets: Budgets
    seconds: float
    inference: FilterInference | None = None
    """Reads words of a query as filters; None does not."""

    def deadline(self, cancel_token: CancelToken | None = None) -> Deadline:
        """Return the time that a search may take; `cancel_token` ends it sooner."""
        return Deadline.after(self.seconds, cancel_token)

    def request(
        self,
        parsed: ParsedQuery,
        readers: Readers,
        filters: Filters,
        deadline: Deadline,
        spelling: Spelling = Spelling.CORRECT_UNKNOWN,
        infer: frozenset[FilterKind] = EVERY_KIND,
    ) -> SearchRequest:
        """Make a request of what a person typed; its filters narrow `filters`.

        Args:
            infer: kinds of filters that words may be read as.

        Raises as a search does: names of people are looked up among those whom the asker may see.
        """
        named = parsed.values(OperatorKind.PERSON)
        people = resolve_people(self.index, named, readers, deadline) if named else frozenset()

        def read(request: SearchRequest) -> SearchRequest:
            if self.inference is not None:
                request = self.inference.infer(request, parsed, infer)
            if spelling is Spelling.AS_WRITTEN:
                return request
            return correct_request(request, self.index)

        return make_request(
            parsed.text,
            readers,
            deadline,
            self.budgets,
            model_queries=(),
            history=(),
            filters=filters.narrowed_by(parsed.filters(people)),
            conditions=parsed.conditions,
            read=read,
        )

    def find_sections(self, request: SearchRequest, limit: int) -> list[SearchDoc]:
        """Find the best `limit` sections, numbered by document."""
        return self.tool(None, DocumentNumbers()).find_sections(request, limit)


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
        return [self._to_doc(group, numbers) for group in self.groups]

    def _to_doc(self, group: SectionGroup, numbers: DocumentNumbers) -> SearchDoc:
        number = numbers.assign(group.best.document_id)
        successor = self.ranking.successors.get(group.best.document_id)
        further = tuple(SearchDoc.from_section(one, number, successor) for one in group.further)
        return replace(SearchDoc.from_section(group.best, number, successor), further=further)


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
