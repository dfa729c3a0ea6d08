"""The turns of conversations: which answers are being written, by which process, and the events of each.

A process renews the leases of its turns whenever it stores their events. Where a turn was ended by somebody else, nothing that
its process reports later is accepted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningUpdate

from backend.store.chat import answer_texts
from backend.store.chat.conversations import IS_OWNED
from backend.store.chat.messages import AnswerStatus
from backend.store.chat.turn_news import send_news
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations, messages, turn_events, turns
from backend.store.sync import runs
from backend.store.sync.runs import Process

LEASE = timedelta(seconds=60)
"""Longer than a statement waits for a lock, and than a database is usually away: a turn whose process lives survives both."""
EVENTS_KEPT = timedelta(hours=1)
"""After the end of a turn; then the message alone has the answer."""


class TurnState(Enum):
    RUNNING = auto()
    STOPPING = auto()
    """It is asked to stop."""
    ENDED = auto()
    """It was ended, or deleted."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that was not ended."""

    message_id: int
    holder: Process
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class Portion:
    """Events of a turn that are stored together."""

    message_id: int
    first: int
    last: int
    payload: str
    """JSON: number, name and data of each."""
    document_ids: tuple[str, ...] | None
    """All documents that the answer rests on by now, where that has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an answer ended, and what is kept of it."""

    message_id: int
    status: AnswerStatus
    text: str
    answer: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None
    losses: tuple[Mapping[str, Any], ...] = ()
    """Steps that it was written without."""


@dataclass(frozen=True, slots=True)
class FollowedTurn:
    """An answer as its followers see it."""

    conversation_id: str
    status: AnswerStatus
    document_ids: tuple[str, ...]
    payloads: tuple[str, ...]
    """Portions that hold events behind the number that was asked for; others may stand in the first of them."""


def insert_turn(connection: Connection, message_id: int, holder: Process, now: datetime) -> None:
    """Make a process the writer of an answer; forget turns whose events are kept no longer."""
    past = select(turns.c.message_id).where(turns.c.ended_at < now - EVENTS_KEPT)
    # Those that another transaction deletes at this moment are left to it: who waits for them could deadlock.
    forgotten = past.with_for_update(skip_locked=True)
    connection.execute(delete(turns).where(turns.c.message_id.in_(forgotten)))
    row = {"message_id": message_id, "lease_until": now + LEASE, **runs.holder_columns(holder)}
    connection.execute(insert(turns).values(row))


def list_open(database: Database) -> list[OpenTurn]:
    query = select(turns).where(turns.c.ended_at.is_(None)).order_by(turns.c.message_id)
    with database.reading() as connection:
        found = connection.execute(query).all()
    return [OpenTurn(row.message_id, runs.read_holder(row), row.lease_until) for row in found]


def ask_to_stop(database: Database, message_id: int, now: datetime) -> None:
    """Ask the process that writes an answer to stop. What has ended stays as it is."""
    which = and_(turns.c.message_id == message_id, turns.c.ended_at.is_(None))
    with database.writing() as connection:
        connection.execute(update(turns).where(which).values(stop_asked_at=now))


# Built once: they are executed several times a second, for each turn and for each of its followers.
_OPEN = (
    select(turns.c.message_id)
    .where(turns.c.message_id.in_(bindparam("ids", expanding=True)), turns.c.ended_at.is_(None))
    # In the order in which a conversation that is deleted locks its turns, so that no two transactions deadlock.
    .order_by(turns.c.message_id)
    .with_for_update()
)


def _make_renewal(which: ColumnElement[bool]) -> ReturningUpdate[tuple[int, datetime | None]]:
    renewed = update(turns).where(which).values(lease_until=bindparam("until"))
    return renewed.returning(turns.c.message_id, turns.c.stop_asked_at)


_ANSWER = (
    select(messages.c.status, messages.c.document_ids)
    .join(conversations)
    .where(IS_OWNED, messages.c.id == bindparam("message_id"))
)
_EVENTS_BEHIND = (
    select(turn_events.c.payload)
    .where(
        turn_events.c.message_id == bindparam("message_id"), turn_events.c.last > bindparam("after")
    )
    .order_by(turn_events.c.first)
)
_RENEW = _make_renewal(turns.c.message_id.in_(_OPEN))
_RENEW_ONE = _make_renewal(
    and_(turns.c.message_id == bindparam("renewed_id"), turns.c.ended_at.is_(None))
)
"""Of a turn alone, which needs no order: a list of ids is written into the statement each time."""


def _make_upsert(made: postgresql.Insert | sqlite.Insert) -> postgresql.Insert | sqlite.Insert:
    """Let an insert replace a portion: one whose commit was not confirmed is stored once more, and may have grown."""
    grown = {"last": made.excluded["last"], "payload": made.excluded["payload"]}
    return made.on_conflict_do_update(index_elements=["message_id", "first"], set_=grown)


_STORE_EVENTS = {
    "postgresql": _make_upsert(postgresql.insert(turn_events)),
    "sqlite": _make_upsert(sqlite.insert(turn_events)),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """What a turn has written since it was stored last; without a portion, its lease alone is renewed."""

    message_id: int
    portion: Portion | None
    ending: Ending | None

    @property
    def has_news(self) -> bool:
        return self.portion is not None or self.ending is not None


def store(database: Database, progress: Sequence[Progress], now: datetime) -> dict[int, TurnState]:
    """Store what turns have written and, with the last of it, how they ended. In one transaction, which renews their leases.

    Returns how each turn stood; nothing is stored of one that others had ended.
    """
    with database.writing() as connection:
        states = _renew(connection, [one.message_id for one in progress], now)
        live = [one for one in progress if states[one.message_id] is not TurnState.ENDED]
        _insert(connection, [one.portion for one in live if one.portion is not None])
        for one in live:
            if one.ending is not None:
                _end(connection, one.ending, now)
        send_news(connection, [one.message_id for one in live if one.has_news])
        return states


def _renew(connection: Connection, ids: Sequence[int], now: datetime) -> dict[int, TurnState]:
    until = now + LEASE
    if len(ids) == 1:
        found = connection.execute(_RENEW_ONE, {"renewed_id": ids[0], "until": until})
    else:
        found = connection.execute(_RENEW, {"ids": ids, "until": until})
    asked = {row.message_id: row.stop_asked_at for row in found}
    return {one: _state_of(asked, one) for one in ids}


def _state_of(asked: Mapping[int, datetime | None], message_id: int) -> TurnState:
    if message_id not in asked:
        return TurnState.ENDED
    return TurnState.RUNNING if asked[message_id] is None else TurnState.STOPPING


def _insert(connection: Connection, portions: Sequence[Portion]) -> None:
    rows = [
        {
            "message_id": portion.message_id,
            "first": portion.first,
            "last": portion.last,
            "payload": portion.payload,
        }
        for portion in portions
    ]
    if rows:
        connection.execute(_STORE_EVENTS[connection.dialect.name], rows)
    for portion in portions:
        if portion.document_ids is not None:
            rests_on = update(messages).where(messages.c.id == portion.message_id)
            connection.execute(rests_on.values(document_ids=list(portion.document_ids)))


def _end(connection: Connection, ending: Ending, now: datetime) -> None:
    written = update(messages).where(messages.c.id == ending.message_id)
    connection.execute(
        written.values(
            status=ending.status,
            text=ending.text,
            answer=ending.answer and dict(ending.answer),
            problem=ending.problem and dict(ending.problem),
            losses=list(map(dict, ending.losses)) or None,
        )
    )
    answer_texts.insert_text(connection, ending.message_id, ending.text)
    connection.execute(
        update(turns).where(turns.c.message_id == ending.message_id).values(ended_at=now)
    )


def take_over(
    database: Database,
    turn: OpenTurn,
    end: Callable[[int, tuple[str, ...]], tuple[Portion, Ending]],
    now: datetime,
) -> bool:
    """End a turn whose process has died; whether it still was as it had been found, open and with the same lease.

    Args:
        end: given the number of the last event, 0 without any, and all portions, returns what the turn ends with.
    """
    query = select(turn_events.c.last, turn_events.c.payload)
    query = query.where(turn_events.c.message_id == turn.message_id).order_by(turn_events.c.first)
    with database.writing() as connection:
        if not _claim(connection, turn, now):
            return False
        found = connection.execute(query).all()
        last = found[-1].last if found else 0
        portion, ending = end(last, tuple(row.payload for row in found))
        _insert(connection, [portion])
        _end(connection, ending, now)
        send_news(connection, [turn.message_id])
        return True


def _claim(connection: Connection, turn: OpenTurn, now: datetime) -> bool:
    as_found = and_(turns.c.message_id == turn.message_id, turns.c.lease_until == turn.lease_until)
    claimed = update(turns).where(as_found, turns.c.ended_at.is_(None))
    return connection.execute(claimed.values(lease_until=now + LEASE)).rowcount == 1


def follow(
    database: Database,
    owner: ConversationOwner,
    conversation_id: str,
    message_id: int,
    after: int,
) -> FollowedTurn | None:
    """Return an answer as it is now, with its events behind a number; None where the owner has no such answer.

    What the events rest on is read together with them.
    """
    asked = {
        "message_id": message_id,
        "conversation_id": conversation_id,
        "person_id": owner.person_id,
    }
    with database.reading() as connection:
        row = connection.execute(_ANSWER, asked).one_or_none()
        if row is None or row.status is None:
            return None
        behind = {"message_id": message_id, "after": after}
        payloads = tuple(connection.scalars(_EVENTS_BEHIND, behind))
    return FollowedTurn(conversation_id, row.status, tuple(row.document_ids), payloads)


def list_running(database: Database, conversation_id: str) -> list[int]:
    """Return the answers that are being written in a conversation, on whichever path."""
    query = select(turns.c.message_id).join(messages).order_by(turns.c.message_id)
    query = query.where(messages.c.conversation_id == conversation_id, turns.c.ended_at.is_(None))
    with database.reading() as connection:
        return list(connection.scalars(query))


def count_running(connection: Connection, conversation_id: str) -> int:
    query = select(func.count()).select_from(turns).join(messages)
    open_turns = query.where(
        messages.c.conversation_id == conversation_id, turns.c.ended_at.is_(None)
    )
    return connection.scalar(open_turns) or 0
