"""Requests of programs that put documents in or delete them: each is one transaction, with the documents that it changes.

Requests are numbered in the order in which they are committed, so that whoever reads on from a number misses none. All
functions that take a connection of their own are to be called in `Database.transaction`, which sees to that.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, delete, exists, func, insert, select, update

from backend.store.database import Database, upsert
from backend.store.documents.document_contents import encode_document, to_fields
from backend.store.schema.push_tables import pushed_documents, pushes
from backend.store.schema.tables import documents
from connectors.errors import ConflictError, TemporarilyUnavailableError
from connectors.sources.ingest.pushed_documents import PushedDocument

KEY_LASTS = timedelta(days=1)
"""How long a key makes the same request count once."""
MOST_WAITING_BYTES = 200_000_000
"""Of all files that wait to be read."""
_SHARES = 4
"""One source may have one of so many shares of these bytes: it may be paused."""
_RETRY_AFTER = timedelta(seconds=5)
_FULL = "Too many files wait to be read. Send this one again in a while."
_SOURCE_FULL = (
    "Too many files of this source wait to be read. Send this one again once a sync has read some of them: if the source is"
    " paused, resume it; if it is not, see under Sources why it is not synced."
)
_OTHER_REQUEST = "This Idempotency-Key came with another request within the last day. Send each request with a key of its own."


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    source_id: int
    digest: str
    """Of the request."""
    key: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedDocument:
    """What is to be stored of a document: encoded before the transaction, which keeps others waiting."""

    id: str
    title: str
    digest: str
    readers: Sequence[object]
    content: bytes = field(repr=False)
    file: bytes | None = field(repr=False)


def encode(pushed: PushedDocument) -> EncodedDocument:
    document = pushed.document
    readers = document.access.to_json()
    said = json.dumps([to_fields(document), readers], sort_keys=True)
    return EncodedDocument(
        id=document.id,
        title=document.title,
        digest=hashlib.sha256(said.encode() + b"\0" + (pushed.file or b"")).hexdigest(),
        readers=readers,
        content=encode_document(document),
        file=pushed.file,
    )


def find_answer(database: Database, push: Push) -> Mapping[str, Any] | None:
    """Return what the request with this key was answered, if it came before.

    Raises:
        ConflictError: another request came with this key.
    """
    if push.key is None:
        return None
    same = and_(pushes.c.source_id == push.source_id, pushes.c.key == push.key)
    with database.writing() as connection:
        connection.execute(delete(pushes).where(pushes.c.pushed_at < push.at - KEY_LASTS))
        row = connection.execute(select(pushes.c.digest, pushes.c.answer).where(same)).one_or_none()
    if row is None:
        return None
    if row.digest != push.digest:
        raise ConflictError(_OTHER_REQUEST)
    answer: Mapping[str, Any] = row.answer
    return answer


def find_unchanged(
    database: Database, source_id: int, given: Sequence[EncodedDocument]
) -> frozenset[str]:
    """Return the ids of those documents that are stored as they are given, but for files that could not be read."""
    columns = pushed_documents.c
    query = select(columns.id, columns.digest).where(
        columns.source_id == source_id,
        columns.id.in_([each.id for each in given]),
        columns.content.is_not(None),
        columns.problem.is_(None),
    )
    with database.reading() as connection:
        stored = dict(connection.execute(query).all())
    return frozenset(each.id for each in given if stored.get(each.id) == each.digest)


def save(
    database: Database, push: Push, changed: Sequence[EncodedDocument], answer: Mapping[str, Any]
) -> None:
    """Save a request with its answer and the documents that it changes.

    Raises:
        TemporarilyUnavailableError: too many files wait to be read.
    """
    _check_space(database, push, changed)
    number = _add(database, push, answer)
    with database.writing() as connection:
        upsert(connection, pushed_documents, [_to_row(push, number, each) for each in changed])


def list_present(database: Database, source_id: int, ids: Sequence[str]) -> frozenset[str]:
    """Return those of these documents that are there."""
    columns = pushed_documents.c
    query = select(columns.id).where(
        columns.source_id == source_id, columns.id.in_(ids), columns.content.is_not(None)
    )
    with database.reading() as connection:
        return frozenset(connection.scalars(query))


def save_deletion(
    database: Database, push: Push, ids: Sequence[str], answer: Mapping[str, Any]
) -> None:
    """Save a request that deletes these documents of the source. Their rows stay until the index has none of them."""
    number = _add(database, push, answer)
    gone = update(pushed_documents).where(
        pushed_documents.c.source_id == push.source_id, pushed_documents.c.id.in_(ids)
    )
    nothing = {"content": None, "file": None, "file_size": 0, "problem": None}
    with database.writing() as connection:
        connection.execute(gone.values(nothing | {"push": number, "pushed_at": push.at}))


def remove_deleted(database: Database, source_id: int, reached: int) -> None:
    """Remove the rows of deleted documents that a sync has read, up to this request, and the index has no more."""
    columns = pushed_documents.c
    is_held = exists().where(documents.c.id == columns.id)
    gone = delete(pushed_documents).where(
        columns.source_id == source_id, columns.content.is_(None), columns.push <= reached, ~is_held
    )
    with database.writing() as connection:
        connection.execute(gone)


def _to_row(push: Push, number: int, document: EncodedDocument) -> dict[str, object]:
    return {
        "id": document.id,
        "source_id": push.source_id,
        "push": number,
        "title": document.title,
        "digest": document.digest,
        "readers": document.readers,
        "content": document.content,
        "file": document.file,
        "file_size": len(document.file or b""),
        "problem": None,
        "pushed_at": push.at,
    }


def _add(database: Database, push: Push, answer: Mapping[str, Any]) -> int:
    row = {
        "source_id": push.source_id,
        "key": push.key,
        "digest": push.digest,
        "answer": None if push.key is None else dict(answer),
        "pushed_at": push.at,
    }
    with database.writing() as connection:
        connection.execute(delete(pushes).where(pushes.c.pushed_at < push.at - KEY_LASTS))
        added = connection.execute(insert(pushes).values(row).returning(pushes.c.id))
        return int(added.scalar_one())


def _check_space(database: Database, push: Push, changed: Sequence[EncodedDocument]) -> None:
    more = sum(len(each.file or b"") for each in changed)
    if not more:
        return
    of_source, of_all = _sum_waiting(database, push, [each.id for each in changed])
    # One file of each source always has room: whatever waits elsewhere may be paused.
    if not of_source:
        return
    if of_source + more > MOST_WAITING_BYTES // _SHARES:
        raise TemporarilyUnavailableError(_SOURCE_FULL, _RETRY_AFTER)
    if of_all + more > MOST_WAITING_BYTES:
        raise TemporarilyUnavailableError(_FULL, _RETRY_AFTER)


def _sum_waiting(database: Database, push: Push, replaced: Sequence[str]) -> tuple[int, int]:
    """Return the bytes that wait of the source, and of all sources, without documents that are replaced."""
    columns = pushed_documents.c
    of_this = func.sum(columns.file_size).filter(columns.source_id == push.source_id)
    query = select(of_this, func.sum(columns.file_size)).where(columns.id.not_in(replaced))
    with database.reading() as connection:
        of_source, of_all = connection.execute(query).one()
    return int(of_source or 0), int(of_all or 0)
