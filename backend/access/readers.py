"""From the tokens that an asker has by itself to all that it holds: the right of one request."""

from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.sync import memberships
from connectors.access import Access, Readers

_OF_FILES = "external:files:"


def resolve_readers(database: Database, own: Readers) -> Readers:
    """Return what an asker may read now: add groups with their groups, scopes and conjunctions met.

    Nothing is remembered: what was withdrawn before this call counts for it.
    """
    return own.holding_also(memberships.find_held_tokens(database, own.tokens))


def resolve_with_own_files(
    database: Database, own: Readers, owner: ConversationOwner | None
) -> Readers:
    """Return the same with the token of the asker's own files.

    Args:
        owner: None for a service token, which has no files.
    """
    resolved = resolve_readers(database, own)
    return resolved if owner is None else add_own_files(resolved, owner)


def add_own_files(readers: Readers, owner: ConversationOwner) -> Readers:
    """Return the tokens with that of somebody's own files."""
    return readers.holding_also([make_files_token(owner)])


def make_files_token(owner: ConversationOwner) -> str:
    """Return the token of somebody's own files, which nobody else holds: neither groups nor sources give it.

    An id names nobody else later, as an address may.
    """
    person = owner.person_id
    return f"{_OF_FILES}{'owner' if person is None else f'person/{person}'}"


def make_file_token(file_id: str) -> str:
    """Return the token of one file, held by those with whom a project or an assistant shares it."""
    return f"{_OF_FILES}file/{file_id}"


def make_file_access(owner: ConversationOwner, file_id: str) -> Access:
    """Return who may read a file: whose it is, and whoever holds its own token."""
    return Access.to([make_files_token(owner), make_file_token(file_id)])


def is_files_token(token: str) -> bool:
    return token.startswith(_OF_FILES)
