"""What an asker may read, with the files of their own."""

from backend.access.own_files import add_own_files
from backend.access.readers import resolve_readers
from backend.api.authorization import Asker
from backend.store.conversations import ConversationOwner
from backend.store.database import Database
from connectors.access import Readers


def resolve_asker_readers(database: Database, asker: Asker) -> Readers:
    """Return what the asker may read as of now."""
    found = resolve_readers(database, asker.readers)
    owner = find_owner(asker)
    return found if owner is None else add_own_files(found, owner)


def find_owner(asker: Asker) -> ConversationOwner | None:
    """Return whose conversations and files are the asker's; None for a service token, which belongs to nobody."""
    if asker.person is not None:
        return ConversationOwner(asker.person.id)
    return None if asker.kind == "token" else ConversationOwner(None)
