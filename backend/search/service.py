"""Searches for one asker that use no language model: what commands, routes and pages call."""

from collections.abc import Callable
from dataclasses import dataclass

from backend.search.models import Budgets, SearchDoc, SearchRequest
from backend.search.search_tool import Ranking, SearchTool
from connectors.access import Readers
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import CancelToken, Deadline


@dataclass(frozen=True, slots=True)
class SearchService:
    """Searches raise DeadlineExceededError, TemporarilyUnavailableError or ActionRequiredError where the
    index does not answer."""

    index: Index
    make_tool: Callable[[], SearchTool]
    """One for each search: a tool numbers the documents that it finds."""
    budgets: Budgets
    seconds: float

    def deadline(self, cancel_token: CancelToken | None = None) -> Deadline:
        """The time that a search may take; `cancel_token` ends it sooner."""
        return Deadline.after(self.seconds, cancel_token)

    def request(
        self, query: str, readers: Readers, filters: Filters, deadline: Deadline
    ) -> SearchRequest:
        return SearchRequest(
            message=query,
            readers=readers,
            deadline=deadline,
            budgets=self.budgets,
            filters=filters,
        )

    def rank(self, request: SearchRequest, limit: int) -> Ranking:
        """At least `limit` chunks, where so many are found."""
        return self.make_tool().rank(request, limit)

    def find_sections(self, request: SearchRequest, limit: int) -> list[SearchDoc]:
        """The best `limit` sections, numbered by document."""
        return self.make_tool().find_sections(request, limit)
