"""What research has found out. An item belongs to a conversation, to a project, or to its owner alone; for everybody else it does not exist.

Whether somebody who sees an item may read what it rests on is decided above, from the documents as they are now.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    and_,
    cast,
    delete,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from backend.store.chat.conversations import is_owned, make_missing_conversation_error
from backend.store.chat.project_membership import is_in_project
from backend.store.chat.projects import make_missing_project_error
from backend.store.database import Database, exclusive, select_texts
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.research.knowledge_records import (
    MOST_ITEMS,
    OWN,
    Correction,
    ItemPosition,
    ItemSource,
    KnowledgePlace,
    NewItem,
    StoredItem,
)
from backend.store.schema.conversation_tables import conversations
from backend.store.schema.knowledge_tables import knowledge_items as items
from backend.store.schema.knowledge_tables import knowledge_sources as item_sources
from backend.store.schema.project_tables import project_members, projects
from backend.store.schema.research_tables import research_runs
from backend.store.schema.tables import documents
from connectors.errors import ConflictError, NotFoundError
from indexing.text.normalization import is_storable

MOST_CHARACTERS = 10_000_000
"""Of all items of such a place: every question that is answered with them reads them."""

_COLUMNS = tuple(one for one in items.c)
_ITEM_VALUES = tuple(
    one.name
    for one in fields(NewItem)
    if one.name not in {"sources", "quotes", "pages", "made_at", "corrected_at"}
)
# Two subqueries side by side: one within the other would not mean the item of the row.
_OWNER_IS_IN_PROJECT = or_(
    exists().where(
        projects.c.id == items.c.project_id,
        or_(
            projects.c.person_id == items.c.person_id,
            and_(projects.c.person_id.is_(None), items.c.person_id.is_(None)),
        ),
    ),
    exists().where(
        project_members.c.project_id == items.c.project_id,
        project_members.c.person_id == items.c.person_id,
    ),
)


def make_missing_item_error() -> NotFoundError:
    """Return the error for an item that is missing, the same as for another person's."""
    return NotFoundError("There is no such item.")


def add(
    database: Database,
    owner: ConversationOwner,
    place: KnowledgePlace,
    added: Sequence[NewItem],
    run_id: str | None,
) -> list[str]:
    """Return the ids of the new items.

    Raises:
        NotFoundError: the owner has no such conversation, or is in no such project.
        ConflictError: the place would hold more than allowed.
    """
    with database.writing() as connection:
        exclusive(connection)
        return _insert(connection, owner, place, added, run_id)


def add_of_run(
    database: Database,
    owner: ConversationOwner,
    place: KnowledgePlace,
    added: Sequence[NewItem],
    run_id: str,
) -> list[str]:
    """Add what a run has learned, once: where items of it are kept, or it was deleted, nothing is added. Raises as `add`."""
    kept = select(exists().where(items.c.run_id == run_id))
    # Nobody deletes it before this is there.
    run = select(research_runs.c.id).where(research_runs.c.id == run_id)
    with database.writing() as connection:
        exclusive(connection)
        is_there = connection.scalar(run.with_for_update(read=True, key_share=True)) is not None
        if not is_there or connection.scalar(kept):
            return []
        return _insert(connection, owner, place, added, run_id)


def _insert(
    connection: Connection,
    owner: ConversationOwner,
    place: KnowledgePlace,
    added: Sequence[NewItem],
    run_id: str | None,
) -> list[str]:
    now, ids = datetime.now(UTC), [make_random_id() for _ in added]
    belongs = {"person_id": owner.person_id, "run_id": run_id, **_place_columns(place)}
    rows = [
        {"id": item_id, "changed_at": now, **belongs, **_to_row(one)}
        for item_id, one in zip(ids, added, strict=True)
    ]
    named = [
        {"item_id": item_id, **_to_source_row(source)}
        for item_id, one in zip(ids, added, strict=True)
        for source in one.sources
    ]
    _check_place(connection, owner, place)
    _check_room(connection, owner, place, len(added))
    for table, values in ((items, rows), (item_sources, named)):
        if values:
            connection.execute(insert(table), values)
    _check_size(connection, owner, place)
    return ids


def list_page(
    database: Database,
    asker: ConversationOwner,
    places: Collection[KnowledgePlace] | None,
    before: ItemPosition | None,
    limit: int,
) -> list[StoredItem]:
    """Return the items that somebody sees, if they may read what these rest on, the newest first.

    Args:
        places: only what belongs to one of these; None for all.
    """
    query = select(*_COLUMNS).where(_is_told(asker), _is_in(asker, places))
    if before is not None:
        query = query.where(_is_after(before))
    query = query.order_by(items.c.made_at.desc(), items.c.id.desc()).limit(limit)
    with database.reading() as connection:
        return _with_sources(connection, connection.execute(query).mappings().all())


def get(database: Database, asker: ConversationOwner, item_id: str) -> StoredItem:
    """Return an item that the asker may see. Raises NotFoundError."""
    if not is_storable(item_id):
        raise make_missing_item_error()
    query = select(*_COLUMNS).where(items.c.id == item_id, _is_told(asker))
    with database.reading() as connection:
        found = _with_sources(connection, connection.execute(query).mappings().all())
    if not found:
        raise make_missing_item_error()
    return found[0]


def correct(database: Database, item: StoredItem, correction: Correction) -> None:
    """Change what an item says, by a person; what it rests on is as was found out for it.

    Raises:
        NotFoundError: it was deleted meanwhile.
        ConflictError: its place would hold more than allowed.
    """
    now = datetime.now(UTC)
    values = {
        "question": correction.question,
        "answer": correction.answer,
        "quotes": [dict(one) for one in correction.quotes],
        "unverified": False,
        "changed_at": now,
        "corrected_at": now,
    }
    with database.writing() as connection:
        changed = update(items).where(items.c.id == item.id)
        if not connection.execute(changed.values(values)).rowcount:
            raise make_missing_item_error()
        _set_sources(connection, item.id, correction.sources)
        _check_size(connection, item.owner, item.place)


def remove(database: Database, item_id: str) -> None:
    """Delete an item, whosever it is. Raises NotFoundError."""
    with database.writing() as connection:
        if not connection.execute(delete(items).where(items.c.id == item_id)).rowcount:
            raise make_missing_item_error()


def record_checks(database: Database, checked: Iterable[StoredItem]) -> None:
    """Note where the quotes of items stand by now, and whether they do; an item that was changed or deleted meanwhile is left as it is."""
    with database.writing() as connection:
        for one in checked:
            same = (items.c.id == one.id, items.c.changed_at == one.changed_at)
            quotes = [dict(quote) for quote in one.quotes]
            if connection.execute(update(items).where(*same).values(quotes=quotes)).rowcount:
                _set_sources(connection, one.id, one.sources)


def read_content_hashes(database: Database, document_ids: Collection[str]) -> dict[str, str]:
    """Return the hash of the content of each document that there is, whoever may read it."""
    with database.reading() as connection:
        named = documents.c.id.in_(select_texts(connection.dialect.name, document_ids))
        query = select(documents.c.id, documents.c.content_hash).where(named)
        return {row.id: row.content_hash for row in connection.execute(query)}


def _check_place(connection: Connection, owner: ConversationOwner, place: KnowledgePlace) -> None:
    """Check that a place is the owner's, and keep it until the end of the transaction. Raises NotFoundError."""
    if not is_storable(place.id):
        raise make_missing_item_error()
    match place.kind:
        case "own":
            return
        case "conversation":
            query = select(conversations.c.id).where(is_owned(owner, place.id))
            found = connection.scalar(query.with_for_update(read=True, key_share=True))
            error = make_missing_conversation_error()
        case "project":
            query = select(projects.c.id).where(projects.c.id == place.id, is_in_project(owner))
            found = connection.scalar(query.with_for_update(read=True, of=projects, key_share=True))
            error = make_missing_project_error()
    if found is None:
        raise error


def _check_room(
    connection: Connection, owner: ConversationOwner, place: KnowledgePlace, added: int
) -> None:
    count = select(func.count()).select_from(items).where(_belongs_to(owner, place))
    if (connection.scalar(count) or 0) + added > MOST_ITEMS:
        raise ConflictError(
            f"At most {MOST_ITEMS:,} findings are kept in one place. Delete some that you do not need any more."
        )


def _check_size(connection: Connection, owner: ConversationOwner, place: KnowledgePlace) -> None:
    """Raise ConflictError if a place holds too much, so that what was written before in the transaction is not kept."""
    texts = (items.c.question, items.c.answer, items.c.source_code, items.c.quotes, items.c.pages)
    lengths = [func.sum(func.length(cast(one, Text))) for one in texts]
    totals = connection.execute(select(*lengths).where(_belongs_to(owner, place))).one()
    if sum(filter(None, totals)) > MOST_CHARACTERS:
        raise ConflictError(
            f"The findings of one place have at most {MOST_CHARACTERS:,} characters. Delete some that you do not need any more."
        )


def _place_columns(place: KnowledgePlace) -> dict[str, str | None]:
    return {
        "conversation_id": place.id if place.kind == "conversation" else None,
        "project_id": place.id if place.kind == "project" else None,
    }


def _to_row(item: NewItem) -> dict[str, object]:
    return {
        **{name: getattr(item, name) for name in _ITEM_VALUES},
        "quotes": [dict(one) for one in item.quotes],
        "pages": [dict(one) for one in item.pages],
        "made_at": item.made_at,
        "corrected_at": item.corrected_at,
    }


def _to_source_row(source: ItemSource) -> dict[str, object]:
    return {one.name: getattr(source, one.name) for one in fields(source)}


def _set_sources(connection: Connection, item_id: str, sources: Sequence[ItemSource]) -> None:
    connection.execute(delete(item_sources).where(item_sources.c.item_id == item_id))
    if sources:
        rows = [{"item_id": item_id, **_to_source_row(one)} for one in sources]
        connection.execute(insert(item_sources), rows)


def _with_sources(connection: Connection, rows: Sequence[Any]) -> list[StoredItem]:
    found: dict[str, list[ItemSource]] = {row["id"]: [] for row in rows}
    if found:
        named = item_sources.c.item_id.in_(select_texts(connection.dialect.name, found))
        query = select(item_sources).where(named).order_by(item_sources.c.document_id)
        for row in connection.execute(query).mappings():
            values = dict(row)
            found[values.pop("item_id")].append(ItemSource(**values))
    return [_to_item(row, found[row["id"]]) for row in rows]


def _to_item(row: Any, sources: Sequence[ItemSource]) -> StoredItem:
    values = dict(row)
    owner = ConversationOwner(values.pop("person_id"))
    conversation, project = values.pop("conversation_id"), values.pop("project_id")
    if project is not None:
        place = KnowledgePlace("project", project)
    elif conversation is not None:
        place = KnowledgePlace("conversation", conversation)
    else:
        place = OWN
    return StoredItem(owner=owner, place=place, sources=tuple(sources), **values)


def _is_told(asker: ConversationOwner) -> ColumnElement[bool]:
    """Return whether somebody sees an item: of their own, and in a project of those of everybody who is in it too."""
    joined = select(projects.c.id).where(is_in_project(asker))
    return or_(
        and_(items.c.project_id.is_(None), _is_of(asker)),
        and_(items.c.project_id.in_(joined), _OWNER_IS_IN_PROJECT),
    )


def _is_of(owner: ConversationOwner) -> ColumnElement[bool]:
    if owner.person_id is None:
        return items.c.person_id.is_(None)
    return items.c.person_id == owner.person_id


def _is_in(
    asker: ConversationOwner, places: Collection[KnowledgePlace] | None
) -> ColumnElement[bool]:
    if places is None:
        return true()
    return or_(false(), *(_belongs_to(asker, place) for place in places if is_storable(place.id)))


def _belongs_to(owner: ConversationOwner, place: KnowledgePlace) -> ColumnElement[bool]:
    match place.kind:
        case "own":
            alone = (items.c.conversation_id.is_(None), items.c.project_id.is_(None))
            return and_(_is_of(owner), *alone)
        case "conversation":
            return items.c.conversation_id == place.id
        case "project":
            return items.c.project_id == place.id


def _is_after(position: ItemPosition) -> ColumnElement[bool]:
    """Return whether an item follows this position in the list, which begins with the newest."""
    same = items.c.made_at == position.made_at
    return or_(items.c.made_at < position.made_at, and_(same, items.c.id < position.id))
