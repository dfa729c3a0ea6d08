"""Groups of people, and who is in them. Each belongs to the issuer that states it, or to the admins."""

from collections.abc import Set
from datetime import UTC, datetime

from sqlalchemy import Connection, delete, insert, select

from backend.store.database import Database, inserting, select_texts
from backend.store.schema.tables import group_members, groups

OWN = "quarry"
"""The origin of the groups that admins make. No issuer is called so: an issuer is an address."""


def replace_of_person(
    database: Database, person_id: int, origin: str, names: Set[str]
) -> tuple[list[str], list[str]]:
    """Let a person be in these groups of an origin and in no other group of it; return who it was in, and is.

    A name that is taken by a group of another origin is left out: its members are not for this one to say.
    """
    with database.writing() as connection:
        before = _read_groups(connection, person_id, origin)
        _add_groups(connection, origin, names)
        after = _find_groups(connection, origin, names)
        gone = [group for name, group in before.items() if name not in after]
        new = [group for name, group in after.items() if name not in before]
        _change_members(connection, person_id, gone, new)
    return sorted(before), sorted(after)


def _read_groups(connection: Connection, person_id: int, origin: str) -> dict[str, int]:
    query = (
        select(groups.c.name, groups.c.id)
        .join_from(groups, group_members)
        .where(group_members.c.person_id == person_id, groups.c.origin == origin)
    )
    return dict(connection.execute(query).all())


def _find_groups(connection: Connection, origin: str, names: Set[str]) -> dict[str, int]:
    wanted = groups.c.name.in_(select_texts(connection.dialect.name, names))
    query = select(groups.c.name, groups.c.id).where(wanted, groups.c.origin == origin)
    return dict(connection.execute(query).all())


def _add_groups(connection: Connection, origin: str, names: Set[str]) -> None:
    wanted = groups.c.name.in_(select_texts(connection.dialect.name, names))
    known = set(connection.scalars(select(groups.c.name).where(wanted)))
    if missing := sorted(names - known):
        rows = [{"name": name, "origin": origin} for name in missing]
        # Another transaction may add them at the same time.
        connection.execute(inserting(connection, groups).on_conflict_do_nothing(), rows)


def _change_members(
    connection: Connection, person_id: int, gone: list[int], new: list[int]
) -> None:
    for group in gone:
        which = (group_members.c.group_id == group, group_members.c.person_id == person_id)
        connection.execute(delete(group_members).where(*which))
    if new:
        now = datetime.now(UTC)
        rows = [{"group_id": group, "person_id": person_id, "since": now} for group in new]
        connection.execute(insert(group_members), rows)
