"""JSON of why somebody does not find a document."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Self

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.access.explanation import Explanation


class HeldTokenResponse(Schema):
    path: tuple[str, ...]
    is_pending: bool
    since: datetime | None
    """When the last membership on the way began or was first listed; null if there is none, or that is not known."""


class ClauseResponse(Schema):
    needed: tuple[str, ...]
    held: tuple[HeldTokenResponse, ...]
    is_met: bool


class ExplanationResponse(Schema):
    model_config = with_example(
        document_id="handbook:finance/pay.md",
        readers=["public", "user:ann@example.com"],
        reason="lacks_token",
        sentence="They hold no reader token that the document requires.",
        title="Salary bands",
        source="handbook",
        indexed_at="2026-11-03T09:30:00Z",
        failure=None,
        clauses=[{"needed": ["group:finance"], "held": [], "is_met": False}],
        names={},
        source_accounts={},
        compared_at="2026-11-03T09:31:00Z",
        groups_listed_at=None,
        accounts=[],
    )

    document_id: str
    readers: tuple[str, ...]
    reason: str
    sentence: str
    """What the reason means."""
    title: str | None
    """Null if it is not indexed."""
    source: str | None
    indexed_at: datetime | None
    failure: str | None
    """Why its newest version could not be read."""
    clauses: tuple[ClauseResponse, ...]
    """What has to be met to read it, all of it."""
    names: Mapping[str, str]
    """Of groups and scopes, as people at the source know them, by their tokens."""
    source_accounts: Mapping[str, str]
    """The sources of the accounts that an admin mapped to them, by the tokens of these."""
    compared_at: datetime | None
    """When who may read was last compared with the source."""
    groups_listed_at: datetime | None
    """When the members of the source's groups were last listed."""
    accounts: tuple[str, ...]
    """What is the matter with the accounts of the given addresses."""

    @classmethod
    def from_explanation(cls, found: "Explanation") -> Self:
        document, failure = found.document, found.failure
        return cls(
            document_id=found.document_id,
            readers=found.readers,
            reason=found.reason,
            sentence=_SENTENCES[found.reason],
            title=document.title if document else None,
            source=document.source if document else failure.source if failure else None,
            indexed_at=document.indexed_at if document else None,
            failure=failure.reason if failure else None,
            clauses=tuple(map(ClauseResponse.model_validate, found.clauses)),
            names=found.names,
            source_accounts=found.source_accounts,
            compared_at=found.compared_at,
            groups_listed_at=found.groups_listed_at,
            accounts=found.accounts,
        )


_SENTENCES: Mapping[str, str] = {
    "unknown": "No document of this id is indexed. It was deleted, is left out by the settings of its source, or"
    " was not synced yet.",
    "failed": "The document is not indexed, because it could not be read.",
    "no_readers": "Nobody may read the document: its source names no reader, or its readers are unknown.",
    "lacks_token": "They hold no reader token that the document requires.",
    "pending": "They hold what the document requires, but a membership counts only when the permission sync that"
    " found it has compared all documents.",
    "no_text": "They may read the document, but it has no text that could be found.",
    "readable": "They may read the document. If a search does not find it, its words match less than those of others.",
}
