"""Search the documents of a home for one asker, whose rights are read anew for each search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from backend.search.events import SearchDone
from backend.search.models import (
    DocumentNumbers,
    SearchDoc,
    SearchResult,
    make_request,
    read_nothing,
)
from backend.search.query_syntax import parse_query
from backend.search.search_service import SearchService
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.index.versions import IndexVersionReplacedError
from indexing.runtime.deadline import Deadline

Found = TypeVar("Found")
MOST_PASSAGES = 200


@dataclass(frozen=True, slots=True)
class DocumentSearch:
    """Safe to use from several threads.

    Its searches raise DeadlineExceededError, TemporarilyUnavailableError or ActionRequiredError where there is no result.
    """

    open_service: Callable[[], SearchService]
    reopen: Callable[[], object]
    """Called where the index was replaced since it was opened."""
    find_readers: Callable[[], Readers]
    """Returns what the asker may read now."""

    def search(
        self, queries: Sequence[str], numbers: DocumentNumbers, deadline: Deadline
    ) -> SearchResult:
        """Search the queries of a model, at least one, as one search."""
        return self._with_service(lambda service: self._search(service, queries, numbers, deadline))

    def find_passages(self, query: str, limit: int, deadline: Deadline) -> list[SearchDoc]:
        """Return the best passages for a query as a person types it: its filters and phrases count."""
        return self._with_service(lambda service: self._find(service, query, limit, deadline))

    def _with_service(self, work: Callable[[SearchService], Found]) -> Found:
        try:
            return work(self.open_service())
        except IndexVersionReplacedError:
            self.reopen()
            return work(self.open_service())

    def _search(
        self,
        service: SearchService,
        queries: Sequence[str],
        numbers: DocumentNumbers,
        deadline: Deadline,
    ) -> SearchResult:
        inference = service.inference
        request = make_request(
            queries[0],
            self.find_readers(),
            deadline,
            service.budgets,
            model_queries=tuple(queries[1:]),
            history=(),
            filters=Filters(),
            read=read_nothing if inference is None else inference.infer_from_message,
        )
        events = service.tool(None, numbers).run(request)
        return next(event.result for event in events if isinstance(event, SearchDone))

    def _find(
        self, service: SearchService, query: str, limit: int, deadline: Deadline
    ) -> list[SearchDoc]:
        parsed = parse_query(query)
        request = service.request(parsed, self.find_readers(), Filters(), deadline)
        return service.find_sections(request, limit)


def describe_passage(doc: SearchDoc) -> dict[str, Any]:
    """Return of which document a passage is, as metadata in JSON."""
    return {
        "id": doc.document_id,
        "title": doc.title,
        "source": doc.source,
        "link": doc.link,
        "updated_at": doc.updated_at.isoformat() if doc.updated_at else None,
    }
