"""JSON of the accounts that people have at sources."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.store.sync.source_accounts import ListedAccount, SourceAccount

_OWN: dict[str, JsonValue] = {
    "id": "Zt4bXw9sQe2LhGgkD3vT0c",
    "source": "github",
    "account": "octocat",
    "name": "octocat",
    "state": "mapped",
    "asked_at": "2026-11-02T09:30:00Z",
    "mapped_at": "2026-11-02T10:05:00Z",
}
_MANAGED: dict[str, JsonValue] = {
    **_OWN,
    "email": "ann@example.com",
    "mapped_by": "user:admin@example.com",
}


class OwnSourceAccountResponse(Schema):
    model_config = with_example(**_OWN)

    id: str
    source: str
    account: str
    """Its id at the source; as you wrote it, until it is mapped."""
    name: str | None
    """As people at the source know it; null until it is mapped."""
    state: Literal["asked", "mapped"]
    """Only by a mapped account is anything read."""
    asked_at: datetime
    mapped_at: datetime | None

    @classmethod
    def from_account(cls, account: "SourceAccount") -> Self:
        return cls.model_validate(account)


class SourceAccountResponse(OwnSourceAccountResponse):
    model_config = with_example(**_MANAGED)

    name: str | None
    """As people at the source know it; null where the source lists no such account."""
    email: str
    """E-mail address of the person."""
    mapped_by: str | None
    """As the audit calls them."""


class SourceAccountsResponse(Schema):
    model_config = with_example(accounts=[_MANAGED], next=None)

    accounts: tuple[SourceAccountResponse, ...]
    next: str | None
    """Given as `after`, it returns the following ones; null at the end."""

    @classmethod
    def from_accounts(cls, found: Sequence["SourceAccount"], limit: int) -> Self:
        """Take a page, and one more account where there is a following page."""
        shown = tuple(map(SourceAccountResponse.from_account, found[:limit]))
        return cls(accounts=shown, next=shown[-1].id if len(found) > limit else None)


class ListedAccountResponse(Schema):
    model_config = with_example(account="octocat", name="octocat")

    account: str
    """Its id at the source."""
    name: str
    """As people at the source know it."""

    @classmethod
    def from_listed(cls, listed: "ListedAccount") -> Self:
        return cls.model_validate(listed)
