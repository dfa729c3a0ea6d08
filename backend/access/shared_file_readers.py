"""Who reads the files of projects and assistants: whoever is in the project now, or may use the assistant.

A document of a file names a token of its own. Nobody is given that for good: which of these tokens somebody holds is read from
the database each time, so that what they leave, or what is removed, is no longer theirs at once.

Answers that are asked in a project or of an assistant draw on its files, and nothing else does: no other search holds their tokens.
"""

from backend.access.own_readers import make_group_token
from backend.access.readers import make_file_token, resolve_with_own_files
from backend.store.chat import shared_files
from backend.store.chat.assistants import Visibility
from backend.store.chat.shared_files import FileHolders, HoldingAssistant
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers


def resolve_to_open(database: Database, own: Readers, owner: ConversationOwner | None) -> Readers:
    """Return what somebody may open by its id, and see quoted: with the files of all their projects and assistants.

    Args:
        owner: None for a service token, which is in no project.
    """
    resolved = resolve_with_own_files(database, own, owner)
    usable = _find_usable(database, own, owner)
    ids = shared_files.list_ids_in_assistants(database, usable)
    if owner is not None:
        ids |= shared_files.list_ids_in_projects(database, owner)
    return _add(resolved, ids)


def resolve_in(
    database: Database, own: Readers, owner: ConversationOwner | None, holders: FileHolders
) -> Readers:
    """Return what an answer may draw on that somebody asks for in a project or of an assistant."""
    resolved = resolve_with_own_files(database, own, owner)
    ids = frozenset[str]()
    if holders.assistant_id is not None:
        usable = _find_usable(database, own, owner, holders.assistant_id)
        ids |= shared_files.list_ids_in_assistants(database, usable)
    if holders.project_id is not None and owner is not None:
        ids |= shared_files.list_ids_in_projects(database, owner, holders.project_id)
    return _add(resolved, ids)


def may_read_files_of(
    database: Database, own: Readers, owner: ConversationOwner | None, assistant_id: str
) -> bool:
    """Return whether somebody may read the files of an assistant; nobody reads those of one without any."""
    return bool(_find_usable(database, own, owner, assistant_id))


def _find_usable(
    database: Database,
    own: Readers,
    owner: ConversationOwner | None,
    assistant_id: str | None = None,
) -> list[str]:
    """Return the assistants with files that somebody may use. To look after one is not to use it."""
    holding = shared_files.list_holding_assistants(database, assistant_id)
    return [one.id for one in holding if _may_use(one, own, owner)]


def _may_use(one: HoldingAssistant, own: Readers, owner: ConversationOwner | None) -> bool:
    if owner is not None and one.owner == owner:
        return True
    match one.visibility:
        case Visibility.ALL:
            return True
        case Visibility.GROUPS:
            return not own.tokens.isdisjoint(map(make_group_token, one.groups))
        case Visibility.MINE:
            return False


def _add(readers: Readers, file_ids: frozenset[str]) -> Readers:
    return readers.holding_also(map(make_file_token, file_ids))
