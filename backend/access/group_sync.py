"""Brings the members of a source's groups and scopes in line with the source, in a permission sync.

Between any two writes nobody may read what they may not read before or after both. What a group lost is deleted
before documents are compared, and what it gained counts only after: a document may have left a group that somebody
joined since, or come to one that somebody left.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from backend.store import memberships
from backend.store.database import Database
from connectors.access import PUBLIC, parse_reader_token
from connectors.batched import batched
from connectors.connector import ReaderGroup
from indexing.ingestion.deletion_guard import DeletionNeedsApprovalError

_PAGE = 200
"""Groups of one transaction."""


@contextmanager
def syncing_groups(
    database: Database, run: int, source: int, groups: Iterable[ReaderGroup]
) -> Iterator[None]:
    """Delete memberships that ended before the block, and let new ones count after it, unless it fails.

    Raises:
        RunEndedError: the run does not belong to the caller any more.
        ValueError: a token is not one of this source.
    """
    listed: set[str] = set()
    for page in batched(groups, _PAGE):
        for group in page:
            _check_tokens(group, source)
        memberships.save_members(database, run, {group.token: group.members for group in page})
        listed.update(group.token for group in page)
    memberships.delete_groups(database, run, kept=listed)
    try:
        yield
    except DeletionNeedsApprovalError:
        # All documents were compared; nothing but deletions waits for a person.
        memberships.confirm_pending(database, run)
        raise
    memberships.confirm_pending(database, run)


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
