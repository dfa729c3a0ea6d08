"""Assistants: what people set of how they are answered. Who may see which is decided above."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from backend.store.accounts.people import SHOWN_NAME
from backend.store.database import Database, select_texts
from backend.store.files.file_release import release_of_assistant
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.schema.assistant_tables import assistant_groups, assistants
from backend.store.schema.language_model_tables import language_models
from backend.store.schema.tables import groups, people
from indexing.text.normalization import is_storable

DEFAULT_ID = "default"
"""Of the assistant that is always there; it belongs to nobody."""


class Visibility(StrEnum):
    """Who besides its owner may use an assistant."""

    MINE = "mine"
    GROUPS = "groups"
    """The members of its groups."""
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantValues:
    """What is set of an assistant."""

    name: str
    description: str = ""
    instructions: str = ""
    """Given to the language model with each question."""
    starters: tuple[str, ...] = ()
    """Questions to begin with."""
    sources: tuple[str, ...] = ()
    """The sources that are searched; none: all."""
    sets: tuple[str, ...] = ()
    """The document sets that are searched; none: all documents."""
    model: str | None = None
    """The name of a language model, also of one that was removed; None for the default one."""
    temperature: float | None = None
    """None for that of the model."""
    searches: bool = True
    searches_web: bool = True
    """Whether it may search the web, where it searches anything and admins have switched the web on."""
    allowed_domains: tuple[str, ...] = ()
    """Of the web, with their subdomains; none: all that the admins allow."""
    blocked_domains: tuple[str, ...] = ()
    visibility: Visibility = Visibility.MINE
    groups: tuple[str, ...] = ()
    """The names of those whose members may use it, where the visibility says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAssistant:
    id: str
    owner: ConversationOwner
    owner_name: str
    """The name or the address of a person; nothing for the owner of the machine."""
    created_at: datetime
    updated_at: datetime
    values: AssistantValues

    @property
    def is_default(self) -> bool:
        return self.id == DEFAULT_ID


_SELECT = (
    select(
        assistants,
        SHOWN_NAME.label("owner_name"),
        func.coalesce(language_models.c.name, assistants.c.removed_model).label("model"),
    )
    .outerjoin(people, people.c.id == assistants.c.person_id)
    .outerjoin(language_models, language_models.c.id == assistants.c.model_id)
)


def list_known_to(database: Database, owner: ConversationOwner | None) -> list[StoredAssistant]:
    """Return those that are shared with anybody, and those of an owner, by their names."""
    shared = assistants.c.visibility != Visibility.MINE
    known = shared if owner is None else or_(shared, _is_of(owner))
    query = _SELECT.where(known).order_by(func.lower(assistants.c.name), assistants.c.id)
    with database.reading() as connection:
        return _read_all(connection, query)


def find(database: Database, assistant_id: str) -> StoredAssistant | None:
    if not is_storable(assistant_id):
        return None
    with database.reading() as connection:
        found = _read_all(connection, _SELECT.where(assistants.c.id == assistant_id))
    return found[0] if found else None


def add(
    database: Database, owner: ConversationOwner, values: AssistantValues, now: datetime
) -> str:
    """Return the id of the new assistant."""
    assistant_id = make_random_id()
    with database.writing() as connection:
        row = _to_row(connection, values, now)
        row |= {"id": assistant_id, "person_id": owner.person_id, "created_at": now}
        connection.execute(insert(assistants).values(row))
        _set_groups(connection, assistant_id, values.groups)
    return assistant_id


def change(database: Database, assistant_id: str, values: AssistantValues, now: datetime) -> None:
    with database.writing() as connection:
        row = _to_row(connection, values, now)
        connection.execute(update(assistants).where(assistants.c.id == assistant_id).values(row))
        _set_groups(connection, assistant_id, values.groups)


def remove(database: Database, assistant_id: str) -> None:
    gone = select(assistants.c.id).where(assistants.c.id == assistant_id)
    with database.writing() as connection:
        # Before the files, as who adds one locks them: so that no two transactions deadlock.
        connection.execute(gone.with_for_update()).all()
        release_of_assistant(connection, assistant_id)
        connection.execute(delete(assistants).where(assistants.c.id == assistant_id))


def list_unknown_groups(database: Database, names: Collection[str]) -> list[str]:
    """Return those of the names that no group has."""
    wanted = groups.c.name.in_(select_texts(database.engine.name, names))
    with database.reading() as connection:
        known = set(connection.scalars(select(groups.c.name).where(wanted)))
    return sorted(set(names) - known)


def _is_of(owner: ConversationOwner) -> Any:
    if owner.person_id is None:
        return assistants.c.person_id.is_(None)
    return assistants.c.person_id == owner.person_id


def _to_row(connection: Connection, values: AssistantValues, now: datetime) -> dict[str, object]:
    wanted = select(language_models.c.id).where(language_models.c.name == values.model)
    model_id = None if values.model is None else connection.scalar(wanted)
    return {
        "name": values.name,
        "description": values.description,
        "instructions": values.instructions,
        "starters": list(values.starters),
        "sources": list(values.sources),
        "sets": list(values.sets),
        "model_id": model_id,
        "removed_model": values.model if model_id is None else None,
        "temperature": values.temperature,
        "searches": values.searches,
        "searches_web": values.searches_web,
        "allowed_domains": list(values.allowed_domains) or None,
        "blocked_domains": list(values.blocked_domains) or None,
        "visibility": values.visibility,
        "updated_at": now,
    }


def _set_groups(connection: Connection, assistant_id: str, names: Iterable[str]) -> None:
    of_assistant = assistant_groups.c.assistant_id == assistant_id
    connection.execute(delete(assistant_groups).where(of_assistant))
    wanted = groups.c.name.in_(select_texts(connection.dialect.name, names))
    found = connection.scalars(select(groups.c.id).where(wanted)).all()
    if found:
        rows = [{"assistant_id": assistant_id, "group_id": group} for group in found]
        connection.execute(insert(assistant_groups), rows)


def _read_all(connection: Connection, query: Select[Any]) -> list[StoredAssistant]:
    rows = connection.execute(query).mappings().all()
    shared = [row["id"] for row in rows if row["visibility"] == Visibility.GROUPS]
    named = _read_groups(connection, shared) if shared else {}
    return [_to_assistant(row, named.get(row["id"], ())) for row in rows]


def _read_groups(connection: Connection, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    query = (
        select(assistant_groups.c.assistant_id, groups.c.name)
        .join(groups)
        .where(assistant_groups.c.assistant_id.in_(select_texts(connection.dialect.name, ids)))
        .order_by(groups.c.name)
    )
    found: dict[str, tuple[str, ...]] = {}
    for assistant_id, name in connection.execute(query):
        found[assistant_id] = (*found.get(assistant_id, ()), name)
    return found


def _to_assistant(row: RowMapping, named: tuple[str, ...]) -> StoredAssistant:
    return StoredAssistant(
        id=row["id"],
        owner=ConversationOwner(row["person_id"]),
        owner_name=row["owner_name"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        values=AssistantValues(
            name=row["name"],
            description=row["description"],
            instructions=row["instructions"],
            starters=tuple(row["starters"]),
            sources=tuple(row["sources"]),
            sets=tuple(row["sets"]),
            model=row["model"],
            temperature=row["temperature"],
            searches=row["searches"],
            searches_web=row["searches_web"],
            allowed_domains=tuple(row["allowed_domains"] or ()),
            blocked_domains=tuple(row["blocked_domains"] or ()),
            visibility=Visibility(row["visibility"]),
            groups=named,
        ),
    )
