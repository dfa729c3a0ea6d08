"""The page that says to an administrator why somebody does not find a document."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from backend.access.explanation import Reason, explain, parse_readers
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import DatabaseDependency, ReadersDependency, SearchDependency
from backend.api.request_context import CancelTokenDependency
from backend.schemas.explanation import ExplanationResponse
from backend.search.models import DocumentNumbers
from backend.search.query_syntax import parse_query
from backend.search.search_service import Grouping, SearchService, find_grouped
from backend.store.audit import Actor
from backend.store.database import Database
from backend.web.sanitizing import shorten
from backend.web.search_results import LONGEST_TITLE
from backend.web.search_url import LONGEST_QUERY
from backend.web.templates import page
from connectors.access import Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline, DeadlineExceededError

MOST_CHOICES = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """A document that the administrator may read, and that words may mean."""

    id: str
    title: str
    href: str
    """Leads to the explanation of it."""


@requires(Permission.ADMIN)
def explain_page(
    request: Request,
    database: DatabaseDependency,
    asker: AskerDependency,
    service: SearchDependency,
    own: ReadersDependency,
    cancel_token: CancelTokenDependency,
    document: Annotated[str, Query(max_length=10_000)] = "",
    readers: Annotated[str, Query(alias="as", max_length=2_000)] = "",
) -> HTMLResponse:
    """Say why somebody does not find a document; where words are given instead of its id, let one be chosen."""
    name, found, choices, fault = document.strip(), None, None, None
    try:
        if _is_id(name) and readers.strip():
            found = _explain(database, name, readers, asker.actor)
        if name and (not _is_id(name) or (found and found.reason == Reason.UNKNOWN)):
            choices = _find_choices(service, name, readers, own, service.deadline(cancel_token))
    except (
        ValueError,
        ActionRequiredError,
        TemporarilyUnavailableError,
        DeadlineExceededError,
    ) as error:
        fault = str(error)
    values = {
        "document": document,
        "readers": readers,
        "found": found,
        "choices": choices,
        "fault": fault,
    }
    return page(request, "explain.html", "sources", values)


def _is_id(name: str) -> bool:
    """Return whether it is an id or a link: one begins with the name of its source and a colon, one with a protocol."""
    return ":" in name


def _explain(database: Database, name: str, readers: str, actor: Actor) -> ExplanationResponse:
    """Explain why readers do not find a document. Raises ValueError: one of them is no reader token."""
    found = explain(database, name, parse_readers(readers), actor)
    return ExplanationResponse.from_explanation(found)


def _find_choices(
    service: SearchService, text: str, readers: str, own: Readers, deadline: Deadline
) -> tuple[Choice, ...]:
    """Return the documents that are found by words, among those that the administrator may read.

    Others are named by id or link alone: that they exist is nothing to browse.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    parsed = parse_query(text[:LONGEST_QUERY])
    request = service.request(parsed, own, Filters(), deadline)
    tool = service.tool(None, DocumentNumbers())
    found = find_grouped(tool, request, MOST_CHOICES, Grouping.DOCUMENT)
    return tuple(
        Choice(
            id=group.best.document_id,
            title=shorten(group.best.best.chunk.title, LONGEST_TITLE) or "Untitled",
            href=f"/explain?{urlencode({'document': group.best.document_id, 'as': readers})}",
        )
        for group in found.groups
    )
