"""The sources: their settings, sealed credentials and checkpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import TypeAlias

from sqlalchemy import (
    ColumnElement,
    Row,
    ScalarSelect,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database, exclusive
from backend.store.schema.push_tables import pushed_documents, pushes
from backend.store.schema.source_account_tables import source_accounts
from backend.store.schema.tables import (
    batches,
    group_listings,
    listings,
    memberships,
    people,
    runs,
    schedule,
    source_groups,
    sources,
)
from connectors.connector import Checkpoint, validate_source_name
from connectors.errors import ConflictError, NotConfiguredError, NotFoundError


class Unchanged(Enum):
    """A value that stays as it is, where None would remove it."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    id: int
    name: str
    kind: str
    """As `connectors.registry` names it."""
    settings: Mapping[str, object]
    """JSON values, as the settings model of the kind defines them."""
    checkpoint: Checkpoint | None
    created_at: datetime
    credential: str | None = field(default=None, repr=False)
    """As `credential_vault.Vault` sealed it."""
    paused_at: datetime | None = None
    """No run of it starts from then on, until it is resumed."""
    owner_id: int | None = None
    """The person who looks after it; None: the admins."""
    credential_person_id: int | None = None
    """The person who entered the credential; None: an admin."""


@dataclass(frozen=True, slots=True)
class EverySource:
    """What admins look after, and what Quarry itself works on."""


@dataclass(frozen=True, slots=True)
class SourcesOf:
    """What one person looks after."""

    person_id: int


SourceChoice: TypeAlias = EverySource | SourcesOf
"""The sources that exist for an asker."""
EVERY_SOURCE = EverySource()


FILES_KIND = "files"
"""Of the one source of people's own files, which is not connected: see `file_source`."""
IS_CONNECTED = sources.c.kind != FILES_KIND


def where_chosen(choice: SourceChoice) -> list[ColumnElement[bool]]:
    match choice:
        case EverySource():
            return [IS_CONNECTED]
        case SourcesOf(person_id):
            return [IS_CONNECTED, sources.c.owner_id == person_id]


def select_source_id(name: str) -> ScalarSelect[int]:
    """Return a subquery of the id of the source with this name; NULL if there is none."""
    return select(sources.c.id).where(sources.c.name == name).scalar_subquery()


def where_source(name: str | None) -> list[ColumnElement[bool]]:
    """Return the condition that selects the source with this name; no condition without a name."""
    return [] if name is None else [sources.c.name == name]


def count_rows_by_source(
    database: Database, table: Table, source: str | None = None
) -> Mapping[str, int]:
    """Count the rows of a table by its column `source_id`; sources without rows are absent."""
    count = (
        select(sources.c.name, func.count())
        .join(table, table.c.source_id == sources.c.id)
        .group_by(sources.c.name)
    )
    with database.reading() as connection:
        return dict(connection.execute(count.where(*where_source(source))).all())


def add(
    database: Database,
    name: str,
    kind: str,
    settings: Mapping[str, object],
    credential: str | None = None,
    owner_id: int | None = None,
) -> Source:
    """Add a source; the credential is sealed, and entered by the owner.

    Raises:
        ValueError: the name cannot be the prefix of document ids.
        ConflictError: there is one of this name.
    """
    row = {
        "name": validate_source_name(name),
        "kind": kind,
        "settings": dict(settings),
        "credential": credential,
        "created_at": datetime.now(UTC),
        "owner_id": owner_id,
        "credential_person_id": owner_id,
    }
    try:
        with database.writing() as connection:
            connection.execute(insert(sources).values(row))
    except IntegrityError as error:
        raise ConflictError(
            f"There is a source named {name!r} already. Give this one another name."
        ) from error
    return find(database, name)


def edit(
    database: Database,
    name: str,
    settings: Mapping[str, object],
    credential: str | Unchanged | None = UNCHANGED,
    person_id: int | None = None,
) -> Source:
    """Change the settings of a source and, if one is given, its sealed credential, entered by this person.

    Other settings reset the checkpoint, because the former ones selected what lies before it. An unfinished listing
    starts anew: by other settings or another account it would contain other documents.

    Raises:
        NotFoundError: there is none of this name.
    """
    values: dict[str, object] = {"settings": dict(settings)}
    if find(database, name).settings != values["settings"]:
        values["checkpoint"] = None
    if credential is not UNCHANGED:
        values |= {"credential": credential, "credential_person_id": person_id}
    with database.writing() as connection:
        exclusive(connection)
        connection.execute(update(sources).where(sources.c.name == name).values(values))
        listed = update(listings).where(listings.c.source_id == select_source_id(name))
        connection.execute(listed.values(started_at=None, checkpoint=None))
        grouped = update(group_listings).where(group_listings.c.source_id == select_source_id(name))
        connection.execute(grouped.values(started_at=None, checkpoint=None))
    return find(database, name)


def reencrypt_credentials(database: Database, rotate: Callable[[str], str]) -> int:
    """Replace each sealed credential by its rotation, all or none, and return their number.

    Raises:
        NotConfiguredError: one of them cannot be decrypted; none is changed.
    """
    sealed = select(sources).where(sources.c.credential.is_not(None)).order_by(sources.c.id)
    with database.writing() as connection:
        exclusive(connection)
        held = [_to_source(row) for row in connection.execute(sealed)]
        for source in held:
            again = update(sources).where(sources.c.id == source.id)
            connection.execute(again.values(credential=_rotate(source, rotate)))
    return len(held)


def find(database: Database, name: str, choice: SourceChoice = EVERY_SOURCE) -> Source:
    """Return the source of a name. Raises NotFoundError: there is none of this name among those of the choice."""
    named = select(sources).where(sources.c.name == name, *where_chosen(choice))
    with database.reading() as connection:
        row = connection.execute(named).one_or_none()
    if row is None:
        found = list_sources(database, choice)
        names = ", ".join(source.name for source in found) or "none yet"
        raise NotFoundError(f"There is no source named {name!r}. There are: {names}.")
    return _to_source(row)


def check_not_paused(source: Source) -> None:
    """Raise ConflictError if a source is paused."""
    if source.paused_at is not None:
        raise ConflictError(
            f"{source.name!r} is paused. To resume it: quarry sources resume {source.name}"
        )


def find_name(database: Database, number: int) -> str | None:
    """Return the name of the source with this id, if there is one."""
    with database.reading() as connection:
        return connection.scalar(select(sources.c.name).where(sources.c.id == number))


def list_sources(database: Database, choice: SourceChoice = EVERY_SOURCE) -> list[Source]:
    """Return sources by name, in the order of code points: a database would use its own collation."""
    chosen = select(sources).where(*where_chosen(choice))
    with database.reading() as connection:
        found = [_to_source(row) for row in connection.execute(chosen)]
    return sorted(found, key=lambda source: source.name)


def list_owners(database: Database) -> Mapping[int, str]:
    """Return the address of each owner by the id of their source; sources of the admins are absent."""
    owned = select(sources.c.id, people.c.email).join(people, sources.c.owner_id == people.c.id)
    with database.reading() as connection:
        return dict(connection.execute(owned).all())


def set_owner(database: Database, name: str, person_id: int | None) -> None:
    with database.writing() as connection:
        changed = update(sources).where(sources.c.name == name)
        connection.execute(changed.values(owner_id=person_id))


def set_paused(database: Database, name: str, at: datetime | None) -> None:
    with database.writing() as connection:
        connection.execute(update(sources).where(sources.c.name == name).values(paused_at=at))


_TABLES = (
    batches,
    listings,
    group_listings,
    schedule,
    memberships,
    source_groups,
    source_accounts,
    runs,
    pushed_documents,
    pushes,
)
"""What belongs to a source besides its documents and failures."""


def remove(database: Database, name: str) -> None:
    """Delete a source without documents and failures, with its runs, groups and scopes.

    Raises:
        ConflictError: it still has documents.
        NotFoundError: there is none of this name.
    """
    source = find(database, name)
    try:
        with database.writing() as connection:
            for table in _TABLES:
                connection.execute(delete(table).where(table.c.source_id == source.id))
            connection.execute(delete(sources).where(sources.c.id == source.id))
    except IntegrityError as error:
        raise ConflictError(
            f"{name!r} still has documents. Remove them from the index first."
        ) from error


def _to_source(row: Row[tuple[object, ...]]) -> Source:
    return Source(
        id=row.id,
        name=row.name,
        kind=row.kind,
        settings=row.settings,
        checkpoint=None if row.checkpoint is None else Checkpoint(row.checkpoint),
        created_at=row.created_at,
        credential=row.credential,
        paused_at=row.paused_at,
        owner_id=row.owner_id,
        credential_person_id=row.credential_person_id,
    )


def _rotate(source: Source, rotate: Callable[[str], str]) -> str | None:
    try:
        return source.credential and rotate(source.credential)
    except NotConfiguredError as error:
        raise NotConfiguredError(f"{source.name!r}: {error} Nothing was changed.") from error
