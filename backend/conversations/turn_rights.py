"""What the person of a turn may read now. It goes on after the request that began it, so that no request is asked again."""

from backend.access.own_readers import find_own_readers
from backend.access.shared_file_readers import resolve_in
from backend.chat.rights_watch import ReadersNow
from backend.store.accounts import people
from backend.store.chat.shared_files import FileHolders
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers


def make_owner_readers(
    database: Database, owner: ConversationOwner, own: Readers, holders: FileHolders
) -> ReadersNow:
    """Return what reads the rights of a person anew, or those of the owner of a machine.

    Args:
        own: what the owner of a machine holds by itself.
        holders: whose files the turn draws on as well.
    """

    def read() -> Readers | None:
        if owner.person_id is None:
            # Where there are accounts by now, the machine has no owner any more.
            if people.has_people(database):
                return None
            return resolve_in(database, own, owner, holders)
        person = people.find(database, owner.person_id)
        if person is None or person.disabled_at is not None:
            return None
        return resolve_in(database, find_own_readers(database, person), owner, holders)

    return read
