"""Document sets: what an admin gathers by rules, and which documents belong to it.

A set never decides what somebody may read. In the index a document carries the labels of its sets; a label outlasts a
change of the name. Every change of any set has a number, `version`, that grows: whoever writes a document by the rules of one
version looks afterwards whether there is a newer one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database, exclusive
from backend.store.documents.document_set_rules import RuleKind, SetRule
from backend.store.schema.document_set_tables import (
    document_set_rules,
    document_set_versions,
    document_sets,
)
from backend.store.schema.tables import sources
from backend.store.sync.sources import EVERY_SOURCE, SourceChoice, SourcesOf
from connectors.access import Readers
from connectors.errors import ConflictError, NotFoundError
from indexing.index.protocols import SelectedDocument
from indexing.ingestion.ledger import SetAssignment

NEW, CURRENT, GONE = "new", "current", "gone"
"""States of a rule: not all of its documents are in the set yet, all are, or it was removed and not all have left the set yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValues:
    """What a person says of a set."""

    name: str
    description: str
    readers: frozenset[str]
    """Reader tokens. Whoever holds one of them sees the set; `public`: everybody."""
    rules: tuple[SetRule, ...]
    """A document belongs to the set by any one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProgress:
    """How far the documents are updated with what belongs to the set."""

    is_applied: bool
    done: int
    """Documents that were changed in the current application."""
    total: int | None
    documents: int | None
    """That belonged to the set when it was last applied."""
    trouble: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSet:
    id: int
    values: SetValues
    changed_at: datetime
    progress: SetProgress

    @property
    def name(self) -> str:
        return self.values.name

    @property
    def label(self) -> str:
        return make_label(self.id)


def make_label(set_id: int) -> str:
    """Return what documents of the set carry in the index. No name of a set looks like it."""
    return f"#{set_id}"


def list_sets(database: Database, choice: SourceChoice = EVERY_SOURCE) -> list[DocumentSet]:
    """Return the sets by name: all, or those wholly of the sources of the choice."""
    with database.reading() as connection:
        rows = connection.execute(select(document_sets).where(_EXISTS)).all()
        rules = _read_rules(connection)
    found = [
        _to_set(row, [rule for rule, _ in rules.get(row.id, [])])
        for row in rows
        if _is_chosen(choice, [owner for _, owner in rules.get(row.id, [])] or [row.left_to])
    ]
    return sorted(found, key=lambda each: each.name)


def find(database: Database, name: str, choice: SourceChoice = EVERY_SOURCE) -> DocumentSet:
    """Return the set of a name. Raises NotFoundError: there is none of this name among those of the choice."""
    for each in list_sets(database, choice):
        if each.name == name:
            return each
    raise NotFoundError(f"There is no document set named {name!r}. To list them: quarry sets list")


def list_visible(database: Database, readers: Readers) -> Mapping[str, str]:
    """Return the names of the sets that are shown to these readers, by label."""
    shown = select(document_sets.c.id, document_sets.c.name, document_sets.c.readers)
    with database.reading() as connection:
        rows = connection.execute(shown.where(_EXISTS).order_by(document_sets.c.name)).all()
    return {make_label(row.id): row.name for row in rows if readers.hold_any(row.readers)}


def list_labels(database: Database) -> frozenset[str]:
    """Return the labels of all sets that there are."""
    with database.reading() as connection:
        found = connection.scalars(select(document_sets.c.id).where(_EXISTS))
        return frozenset(map(make_label, found))


def list_descriptions(database: Database, names: Iterable[str]) -> Mapping[str, str]:
    """Return the descriptions of these sets by name."""
    query = select(document_sets.c.name, document_sets.c.description)
    with database.reading() as connection:
        named = query.where(_EXISTS, document_sets.c.name.in_(list(names)))
        return dict(connection.execute(named).all())


def add(database: Database, values: SetValues) -> None:
    """Add a set, whose documents are due to be updated. Raises ConflictError: there is a set of this name."""
    now = datetime.now(UTC)
    try:
        with database.writing() as connection:
            exclusive(connection)
            version = _next_version(connection)
            row = _columns(values) | {
                "created_at": now,
                "changed_at": now,
                "version": version,
                "applied": 0,
                "whole_since": 0,
                "done": 0,
                "fence": 0,
            }
            inserted = connection.execute(insert(document_sets).values(row))
            (set_id,) = inserted.inserted_primary_key or (0,)
            _save_rules(connection, set_id, values.rules, version)
    except IntegrityError as error:
        raise _is_taken(values.name) from error


def change(database: Database, set_id: int, values: SetValues) -> None:
    """Change a set; with other rules, its documents are due. Raises ConflictError: another set has this name."""
    changed = update(document_sets).where(document_sets.c.id == set_id)
    try:
        with database.writing() as connection:
            exclusive(connection)
            columns = _columns(values) | {"changed_at": datetime.now(UTC)}
            if values.rules:
                columns["left_to"] = None
            connection.execute(changed.values(columns))
            if set(_read_rules_of(connection, set_id)) != set(values.rules):
                version = _next_version(connection)
                _save_rules(connection, set_id, values.rules, version)
                _make_due(connection, [set_id], version)
    except IntegrityError as error:
        raise _is_taken(values.name) from error


def remove(database: Database, set_id: int) -> None:
    """Remove a set for everybody at once. Its row stays until no document carries its label."""
    with database.writing() as connection:
        exclusive(connection)
        version = _next_version(connection)
        which = document_sets.c.id == set_id
        gone = {"name": make_label(set_id), "removed_at": datetime.now(UTC), "readers": []}
        connection.execute(update(document_sets).where(which).values(gone))
        of_set = document_set_rules.c.set_id == set_id
        connection.execute(delete(document_set_rules).where(of_set))
        _make_due(connection, [set_id], version)


def reapply_all(database: Database) -> None:
    """Have all documents of all sets compared with the rules, because the index is about to be another one."""
    with database.writing() as connection:
        exclusive(connection)
        ids = list(connection.scalars(select(document_sets.c.id)))
        if ids:
            make_all_due(connection, ids)


def make_all_due(connection: Connection, ids: Sequence[int]) -> None:
    """Have all documents of these sets compared with the rules."""
    version = _next_version(connection)
    _make_due(connection, ids, version)
    compared = update(document_sets).where(document_sets.c.id.in_(ids))
    connection.execute(compared.values(whole_since=version))


def read_version(database: Database) -> int:
    """Return the number of the latest change of any set."""
    with database.reading() as connection:
        return _read_version(connection)


def assign(database: Database, documents: Sequence[SelectedDocument]) -> SetAssignment:
    """Return the labels of the sets that each of these documents belongs to, by the rules of now."""
    ids = [document.id for document in documents]
    with database.reading() as connection:
        version = _read_version(connection)
        rows = connection.execute(_select_rules(STANDS, _concerns(ids))).all()
    rules = [(make_label(row.set_id), to_rule(row).to_selection()) for row in rows]
    labels = {
        document.id: frozenset(label for label, rule in rules if rule.accepts(document))
        for document in documents
    }
    return SetAssignment(version, labels)


_EXISTS = document_sets.c.removed_at.is_(None)
STANDS = document_set_rules.c.state != GONE


def _concerns(ids: Sequence[str]) -> Any:
    kind = document_set_rules.c.kind
    named = and_(kind == RuleKind.DOCUMENT, document_set_rules.c.value.in_(ids))
    return or_(kind != RuleKind.DOCUMENT, named)


def _select_rules(*conditions: Any) -> Any:
    """Select rules with the names and owners of their sources."""
    return (
        select(document_set_rules, sources.c.name.label("source"), sources.c.owner_id)
        .select_from(document_set_rules)
        .outerjoin(sources, document_set_rules.c.source_id == sources.c.id)
        .where(*conditions)
        .order_by(document_set_rules.c.id)
    )


def to_rule(row: Row[Any]) -> SetRule:
    """Return the rule of a row that names its source."""
    return SetRule(RuleKind(row.kind), row.value, row.source)


def read_rules(connection: Connection, set_id: int) -> list[Row[Any]]:
    """Return the rules of a set as rows, those that are gone too."""
    return list(connection.execute(_select_rules(document_set_rules.c.set_id == set_id)))


def _read_rules(connection: Connection) -> Mapping[int, list[tuple[SetRule, int | None]]]:
    """Return the standing rules of each set, each with the owner of its source."""
    found: dict[int, list[tuple[SetRule, int | None]]] = {}
    for row in connection.execute(_select_rules(STANDS)):
        owner = row.owner_id if row.source is not None else None
        found.setdefault(row.set_id, []).append((to_rule(row), owner))
    return found


def _read_rules_of(connection: Connection, set_id: int) -> list[SetRule]:
    return [to_rule(row) for row in read_rules(connection, set_id) if row.state != GONE]


def _is_chosen(choice: SourceChoice, owners: Sequence[int | None]) -> bool:
    """Return whether a set whose rules are, or were, of sources of these owners exists for an asker."""
    if not isinstance(choice, SourcesOf):
        return True
    return all(owner == choice.person_id for owner in owners)


def _columns(values: SetValues) -> dict[str, object]:
    return {
        "name": values.name,
        "description": values.description,
        "readers": sorted(values.readers),
    }


def _save_rules(
    connection: Connection, set_id: int, rules: Iterable[SetRule], version: int
) -> None:
    """Let a set have these rules; those that it has no longer stay until their documents are updated."""
    wanted = dict.fromkeys(rules)
    for row in read_rules(connection, set_id):
        rule = to_rule(row)
        state = (NEW if row.state == GONE else row.state) if rule in wanted else GONE
        wanted.pop(rule, None)
        if state != row.state:
            which = update(document_set_rules).where(document_set_rules.c.id == row.id)
            connection.execute(which.values(state=state, since=version))
    numbers = dict(connection.execute(select(sources.c.name, sources.c.id)).all())
    fresh = [
        {
            "set_id": set_id,
            "kind": rule.kind,
            "source_id": None if rule.source is None else numbers[rule.source],
            "value": rule.value,
            "state": NEW,
            "since": version,
        }
        for rule in wanted
    ]
    if fresh:
        connection.execute(insert(document_set_rules), fresh)


def _make_due(connection: Connection, ids: Sequence[int], version: int) -> None:
    which = update(document_sets).where(document_sets.c.id.in_(ids))
    connection.execute(
        which.values(version=version, done=0, total=None, trouble=None, next_try=None)
    )


def _next_version(connection: Connection) -> int:
    grown = update(document_set_versions).values(version=document_set_versions.c.version + 1)
    connection.execute(grown)
    return _read_version(connection)


def _read_version(connection: Connection) -> int:
    return connection.scalar(select(document_set_versions.c.version)) or 0


def _is_taken(name: str) -> ConflictError:
    return ConflictError(
        f"There is a document set named {name!r} already. Give this one another name."
    )


def _to_set(row: Row[Any], rules: Sequence[SetRule]) -> DocumentSet:
    return DocumentSet(
        id=row.id,
        values=SetValues(
            name=row.name,
            description=row.description,
            readers=frozenset(row.readers),
            rules=tuple(rules),
        ),
        changed_at=row.changed_at,
        progress=SetProgress(
            is_applied=row.applied == row.version,
            done=row.done,
            total=row.total,
            documents=row.documents,
            trouble=row.trouble,
        ),
    )
