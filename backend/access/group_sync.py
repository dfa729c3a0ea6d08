"""Brings the members of a source's groups and scopes in line with the source, in a permission sync.

Between any two writes nobody may read what they may not read before or after both. What a group lost is deleted
before documents are compared, and what it gained counts only after: a document may have left a group that somebody
joined since, or come to one that somebody left.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from backend.store.database import Database
from backend.store.sync import memberships
from connectors.access import PUBLIC, parse_reader_token
from connectors.connector import Checkpoint, GroupItem, ReaderGroup
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.listings import DeletionNeedsApprovalError

_PAGE = 200
"""Groups of one transaction, at most."""
_MEMBERS = 20_000
"""Members of one transaction, after which it is ended: of many large groups memory holds a few."""


@contextmanager
def syncing_groups(
    database: Database,
    run: int,
    source: int,
    list_groups: Callable[[Checkpoint | None], Iterable[GroupItem]],
) -> Iterator[bool]:
    """Delete memberships that ended before the block, and let new ones count after it, unless it fails.

    Groups are listed from where the last try ended; not again if only the block failed. The block is given whether any membership
    ended, or will count after it.

    Raises:
        RunEndedError: the run does not belong to the caller any more.
        ValueError: a token is not one of this source.
    """
    listing = memberships.resume_listing(database, run)
    has_lost = False
    if not listing.is_whole:
        for page in _group_pages(list_groups(listing.since)):
            for group in page.groups:
                _check_tokens(group, source)
            has_lost |= memberships.save_groups(database, run, page.groups, page.reached)
        has_lost |= memberships.delete_unlisted(database, run)
    try:
        yield has_lost or memberships.has_pending(database, source)
    except DeletionNeedsApprovalError:
        # All documents were compared; nothing but deletions waits for a person.
        memberships.confirm_pending(database, run)
        raise
    memberships.confirm_pending(database, run)


@dataclass(frozen=True, slots=True)
class _Page:
    groups: Sequence[ReaderGroup]
    reached: Checkpoint | None
    """Everything before it is in this page or in earlier ones; None if the page has none."""


def _group_pages(items: Iterable[GroupItem]) -> Iterator[_Page]:
    """Group a listing into pages; an error of the source is raised after a page of what came before it."""
    groups: list[ReaderGroup] = []
    reached: Checkpoint | None = None
    members = 0
    try:
        for item in items:
            match item:
                case ReaderGroup():
                    groups.append(item)
                    members += len(item.members)
                case Checkpoint():
                    reached = item
            if len(groups) >= _PAGE or members >= _MEMBERS:
                yield _Page(groups, reached)
                groups, reached, members = [], None, 0
    except (TemporarilyUnavailableError, ActionRequiredError):
        yield _Page(groups, reached)
        raise
    yield _Page(groups, reached)


def _check_tokens(group: ReaderGroup, source: int) -> None:
    """Refuse what would let a source change the groups of others, or join them."""
    own = f"external:{source}:"
    for token in (group.token, *group.members):
        if parse_reader_token(token) != token:
            raise ValueError(f"reader tokens are not normalized: {token!r}")
    if not group.token.startswith(own):
        raise ValueError(f"{group.token!r} is not a group of the source {source}")
    for member in group.members:
        if not member.startswith((own, "user:", "group:")) and member != PUBLIC:
            raise ValueError(f"{member!r} may not be a member of {group.token!r}")
