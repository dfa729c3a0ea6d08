"""All groups of people with their members, as admins see and change them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, func, insert, select, update

from backend.store.accounts.groups import OWN
from backend.store.accounts.people import PERSON_COLUMNS, Person, read_person
from backend.store.database import Database, inserting
from backend.store.schema.language_model_tables import group_budgets
from backend.store.schema.tables import group_members, groups, people


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    id: int
    name: str
    origin: str
    """Who says who is in it: the issuer of a provider, or `groups.OWN`."""
    members: int

    @property
    def is_own(self) -> bool:
        return self.origin == OWN


_COUNT = (
    select(func.count())
    .where(group_members.c.group_id == groups.c.id)
    .correlate(groups)
    .scalar_subquery()
)
_SELECT = select(groups.c.id, groups.c.name, groups.c.origin, _COUNT.label("members"))


def list_groups(database: Database) -> list[Group]:
    with database.reading() as connection:
        rows = connection.execute(_SELECT.order_by(groups.c.name)).mappings()
        return [Group(**row) for row in rows]


def find(database: Database, group_id: int) -> Group | None:
    with database.reading() as connection:
        row = connection.execute(_SELECT.where(groups.c.id == group_id)).mappings().one_or_none()
    return Group(**row) if row else None


def find_by_name(database: Database, name: str) -> Group | None:
    with database.reading() as connection:
        row = connection.execute(_SELECT.where(groups.c.name == name)).mappings().one_or_none()
    return Group(**row) if row else None


def list_of_person(database: Database, person_id: int) -> list[Group]:
    of_person = select(group_members.c.group_id).where(group_members.c.person_id == person_id)
    query = _SELECT.where(groups.c.id.in_(of_person)).order_by(groups.c.name)
    with database.reading() as connection:
        return [Group(**row) for row in connection.execute(query).mappings()]


def list_members(
    database: Database, group_id: int, after: str = "", limit: int | None = None
) -> list[Person]:
    """Return the members by their addresses, from past the address `after`."""
    query = (
        select(*PERSON_COLUMNS)
        .join_from(group_members, people)
        .where(group_members.c.group_id == group_id, people.c.email > after)
        .order_by(people.c.email)
        .limit(limit)
    )
    with database.reading() as connection:
        return [read_person(row) for row in connection.execute(query)]


def list_dates(database: Database, person_id: int) -> Mapping[str, datetime | None]:
    """Return since when a person is in each of its groups, by their names; None where that was not recorded yet."""
    query = select(groups.c.name, group_members.c.since).join_from(groups, group_members)
    with database.reading() as connection:
        of_person = query.where(group_members.c.person_id == person_id)
        return dict(connection.execute(of_person).all())


def add(database: Database, name: str) -> None:
    with database.writing() as connection:
        connection.execute(insert(groups).values(name=name, origin=OWN))


def rename(database: Database, group_id: int, name: str) -> None:
    with database.writing() as connection:
        connection.execute(update(groups).where(groups.c.id == group_id).values(name=name))


def remove(database: Database, group_id: int) -> None:
    with database.writing() as connection:
        for table in (group_members, group_budgets):
            connection.execute(delete(table).where(table.c.group_id == group_id))
        connection.execute(delete(groups).where(groups.c.id == group_id))


def add_member(database: Database, group_id: int, person_id: int) -> bool:
    """Return whether the person was not in the group before."""
    with database.writing() as connection:
        added = inserting(connection, group_members).on_conflict_do_nothing()
        row = added.values(group_id=group_id, person_id=person_id, since=datetime.now(UTC))
        return connection.scalar(row.returning(group_members.c.person_id)) is not None


def remove_member(database: Database, group_id: int, person_id: int) -> bool:
    """Return whether the person was in the group."""
    which = (group_members.c.group_id == group_id, group_members.c.person_id == person_id)
    with database.writing() as connection:
        return connection.execute(delete(group_members).where(*which)).rowcount > 0
