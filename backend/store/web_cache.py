"""What conversations have found and read on the web, kept while their session lasts: until an hour has passed without a turn.

It belongs to the owner of the conversation. For everybody else there is nothing, and nothing of theirs is kept.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, select, update

from backend.store.chat.conversations import is_owned
from backend.store.database import Database, upsert
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations
from backend.store.schema.web_cache_tables import web_cache_entries as entries

SESSION = timedelta(hours=1)

CacheKind: TypeAlias = Literal["search", "page"]


@dataclass(frozen=True, slots=True)
class CachedSession:
    """The conversation whose session it is, and whose that is."""

    owner: ConversationOwner
    conversation_id: str


@dataclass(frozen=True, slots=True)
class EntryKey:
    kind: CacheKind
    key: str


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Of the entries of one kind in one conversation; those used last are kept."""

    entries: int
    size: int
    """In bytes, of all together."""


def touch(database: Database, session: CachedSession, now: datetime) -> None:
    """Let a session go on, because a turn begins or ends; forget all sessions that have ended."""
    with database.writing() as connection:
        _lock(connection, session)
        _forget_ended(connection, now)
        renewed = update(entries).where(_is_of(session)).values(expires_at=now + SESSION)
        connection.execute(renewed)


def get(database: Database, session: CachedSession, entry: EntryKey, now: datetime) -> bytes | None:
    """Return the content of an entry; it waits for no writer."""
    query = select(entries.c.content).where(_is_entry(session, entry), entries.c.expires_at > now)
    with database.reading() as connection:
        found: bytes | None = connection.scalar(query)
    return found


def mark_used(database: Database, session: CachedSession, entry: EntryKey, now: datetime) -> None:
    with database.writing() as connection:
        connection.execute(update(entries).where(_is_entry(session, entry)).values(used_at=now))


def put(
    database: Database,
    session: CachedSession,
    entry: EntryKey,
    content: bytes,
    limits: CacheLimits,
    now: datetime,
) -> None:
    """Keep a content, and no more of its kind than the limits allow; nothing where its conversation is gone."""
    if len(content) > limits.size:
        return
    with database.writing() as connection:
        if not _lock(connection, session):
            return
        row = {
            "conversation_id": session.conversation_id,
            "kind": entry.kind,
            "key": entry.key,
            "content": content,
            "size": len(content),
            "used_at": now,
            "expires_at": now + SESSION,
        }
        upsert(connection, entries, [row])
        _drop_least_used(connection, session, entry.kind, limits)


def _is_of(session: CachedSession) -> ColumnElement[bool]:
    owned = exists().where(is_owned(session.owner, session.conversation_id))
    return and_(entries.c.conversation_id == session.conversation_id, owned)


def _is_entry(session: CachedSession, entry: EntryKey) -> ColumnElement[bool]:
    return and_(_is_of(session), entries.c.kind == entry.kind, entries.c.key == entry.key)


def _lock(connection: Connection, session: CachedSession) -> bool:
    """Keep others from changing the entries of a conversation; whether there is such a conversation.

    Messages may be added to it meanwhile.
    """
    which = select(conversations.c.id).where(is_owned(session.owner, session.conversation_id))
    return connection.scalar(which.with_for_update(key_share=True)) is not None


def _forget_ended(connection: Connection, now: datetime) -> None:
    ended = select(entries.c.conversation_id, entries.c.kind, entries.c.key)
    # Those that another transaction has locked are left to it: who waits for them could deadlock.
    ended = ended.where(entries.c.expires_at <= now).with_for_update(skip_locked=True)
    for row in connection.execute(ended).all():
        connection.execute(
            delete(entries).where(
                entries.c.conversation_id == row.conversation_id,
                entries.c.kind == row.kind,
                entries.c.key == row.key,
            )
        )


def _drop_least_used(
    connection: Connection, session: CachedSession, kind: CacheKind, limits: CacheLimits
) -> None:
    of_kind = and_(_is_of(session), entries.c.kind == kind)
    listed = select(entries.c.key, entries.c.size).where(of_kind)
    listed = listed.order_by(entries.c.used_at.desc(), entries.c.key)
    dropped, size = [], 0
    for place, row in enumerate(connection.execute(listed).all()):
        size += row.size
        if place >= limits.entries or size > limits.size:
            dropped.append(row.key)
    if dropped:
        connection.execute(delete(entries).where(of_kind, entries.c.key.in_(dropped)))
