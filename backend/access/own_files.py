"""The reader token of somebody's own files. Nobody but the person holds it: neither groups nor sources give it."""

from backend.store.conversations import ConversationOwner
from connectors.access import Readers

_PREFIX = "external:files:"


def make_files_token(owner: ConversationOwner) -> str:
    """An id names nobody else later, as an address may."""
    person = owner.person_id
    return f"{_PREFIX}{'owner' if person is None else f'person/{person}'}"


def add_own_files(readers: Readers, owner: ConversationOwner) -> Readers:
    """Return the tokens with that of the asker's own files."""
    return Readers(readers.tokens | {make_files_token(owner)})


def is_files_token(token: str) -> bool:
    return token.startswith(_PREFIX)
