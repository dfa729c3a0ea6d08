"""Groups with their members in a database, as a permission sync leaves them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from backend.access.group_sync import syncing_groups
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.sync import run_transitions, sources
from backend.store.sync.runs import Run
from backend.sync.run_lease import this_process
from connectors.access import Access
from connectors.connector import ReaderGroup


def _is_dead(run: Run) -> bool:
    del run
    return True


def save_groups(
    database: Database,
    source: str,
    groups: Mapping[str, Iterable[str]],
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Let a source list these groups, by their ids in the source, with reader tokens or ids of groups as members.

    Args:
        names: of groups that people do not know by their ids.
    """
    number = sources.find(database, source).id
    run = run_transitions.begin(database, source, "permissions", this_process(), _is_dead)
    listed = [
        ReaderGroup(
            token_of(number, name),
            frozenset(token_of(number, one) for one in members),
            names.get(name, name),
        )
        for name, members in groups.items()
    ]
    with syncing_groups(database, run, number, lambda _: listed):
        pass
    run_transitions.close(database, run, "done")


def token_of(source: int, name: str) -> str:
    return name if ":" in name or name == "public" else f"external:{source}:{name}"


def save_conjunctions(database: Database, *granted: Access) -> None:
    with database.writing() as connection:
        documents.save_conjunctions(connection, granted)
