"""Research runs as those see them who may: their owner, and whoever is in their project. Others' do not exist."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from backend.store.chat.conversations import ListPosition
from backend.store.chat.project_membership import is_in_project
from backend.store.chat.turn_news import send_news
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.schema.conversation_tables import conversations
from backend.store.schema.knowledge_tables import knowledge_items
from backend.store.schema.project_tables import project_members, projects
from backend.store.schema.research_tables import research_events, research_runs
from connectors.errors import ConflictError, NotFoundError
from indexing.text.normalization import is_storable

ResearchState: TypeAlias = Literal[
    "clarifying", "planned", "waiting", "running", "stopping", "done", "failed", "stopped"
]
"""`clarifying` and `planned` wait for the person; `waiting` for a process."""
AWAITING_PERSON: frozenset[ResearchState] = frozenset({"clarifying", "planned"})
ENDED: frozenset[ResearchState] = frozenset({"done", "failed", "stopped"})
EVENTS_KEPT = timedelta(days=1)
"""After the end of a run; then the record alone has what was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResearch:
    owner: ConversationOwner
    acting_as: Sequence[str] | None
    """The reader tokens of the owner of the machine; None for a person."""
    conversation_id: str | None
    project_id: str | None
    assistant_id: str | None = None
    """None: the default one."""
    question: str
    confirms_plan: bool
    """Whether the plan waits for the person."""
    record: str
    """JSON."""
    history_document_ids: Sequence[str]
    """What the messages before the question rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRun:
    id: str
    owner: ConversationOwner
    acting_as: tuple[str, ...] | None
    conversation_id: str | None
    project_id: str | None
    assistant_id: str | None
    """None: the default one."""
    question: str
    state: ResearchState
    confirms_plan: bool
    history_document_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    """What its events name, each by its place in this list."""
    tasks: int
    tasks_done: int
    has_report: bool
    problem: str | None
    last_event: int
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecordedRun:
    run: ResearchRun
    record: str
    """JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedResearch:
    """A run as its followers see it."""

    state: ResearchState
    history_document_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    """What the events name, each by its place in this list."""
    payloads: tuple[str, ...]
    """Portions that hold events behind the number that was asked for; others may stand in the first of them."""


def make_missing_run_error() -> NotFoundError:
    """Return the error for research that is missing, the same as for another person's."""
    return NotFoundError("There is no such research.")


_PROJECT_ID = func.coalesce(research_runs.c.project_id, conversations.c.project_id)
_PROJECT_ID_COLUMN = _PROJECT_ID.label("shared_project_id")
_AUTHOR_IS_OWNER = or_(
    projects.c.person_id == research_runs.c.person_id,
    projects.c.person_id.is_(None) & research_runs.c.person_id.is_(None),
)
_AUTHOR_IS_MEMBER = research_runs.c.person_id.in_(
    select(project_members.c.person_id).where(project_members.c.project_id == projects.c.id)
)
# A record may be long; lists do without.
_COLUMNS = [each for each in research_runs.c if each is not research_runs.c.record]
_SELECT = (
    select(*_COLUMNS, _PROJECT_ID_COLUMN)
    .outerjoin(conversations, conversations.c.id == research_runs.c.conversation_id)
    .outerjoin(projects, projects.c.id == _PROJECT_ID)
)


def is_own(owner: ConversationOwner) -> ColumnElement[bool]:
    if owner.person_id is None:
        return research_runs.c.person_id.is_(None)
    return research_runs.c.person_id == owner.person_id


def is_own_run(owner: ConversationOwner, run_id: str) -> ColumnElement[bool]:
    return and_(research_runs.c.id == run_id, is_own(owner))


def _is_visible(owner: ConversationOwner) -> ColumnElement[bool]:
    """Return whether a run is somebody's own, or in a project of which they and its author are still members."""
    shared = and_(
        projects.c.id.is_not(None),
        is_in_project(owner),
        or_(_AUTHOR_IS_OWNER, _AUTHOR_IS_MEMBER),
    )
    return or_(is_own(owner), shared)


def add(database: Database, new: NewResearch, now: datetime) -> str:
    """Return the id of the new run, which waits for a process. Forgets events that are kept no longer.

    Raises:
        NotFoundError: its owner has no such conversation, or is in no such project.
    """
    run_id = make_random_id()
    with database.writing() as connection:
        _check_places(connection, new)
        _forget_events(connection, now)
        connection.execute(insert(research_runs).values(_make_row(run_id, new, now)))
    return run_id


def _make_row(run_id: str, new: NewResearch, now: datetime) -> dict[str, object]:
    return {
        "id": run_id,
        "person_id": new.owner.person_id,
        "acting_as": None if new.acting_as is None else list(new.acting_as),
        "conversation_id": new.conversation_id,
        "project_id": new.project_id,
        "assistant_id": new.assistant_id,
        "question": new.question,
        "state": "waiting",
        "confirms_plan": new.confirms_plan,
        "record": new.record,
        "tasks": 0,
        "tasks_done": 0,
        "has_report": False,
        "history_document_ids": list(new.history_document_ids),
        "document_ids": [],
        "last_event": 0,
        "fence": 0,
        "queued_at": now,
        "created_at": now,
        "updated_at": now,
    }


def _check_places(connection: Connection, new: NewResearch) -> None:
    if new.conversation_id is not None:
        mine = (
            conversations.c.person_id.is_(None)
            if new.owner.person_id is None
            else conversations.c.person_id == new.owner.person_id
        )
        _require(
            connection,
            select(conversations.c.id).where(conversations.c.id == new.conversation_id, mine),
            NotFoundError("There is no such conversation."),
        )
    if new.project_id is not None:
        joined = select(projects.c.id).where(
            projects.c.id == new.project_id, is_in_project(new.owner)
        )
        _require(connection, joined, NotFoundError("There is no such project."))


def _require(connection: Connection, query: Select[tuple[str]], error: NotFoundError) -> None:
    # What it belongs to is not deleted before it is there.
    if connection.scalar(query.with_for_update(read=True, key_share=True)) is None:
        raise error


def _forget_events(connection: Connection, now: datetime) -> None:
    past = select(research_runs.c.id).where(research_runs.c.ended_at < now - EVENTS_KEPT)
    connection.execute(delete(research_events).where(research_events.c.run_id.in_(past)))


def get(database: Database, owner: ConversationOwner, run_id: str) -> RecordedRun:
    """Return a run that somebody may see. Raises NotFoundError."""
    return _find_one(database, run_id, _is_visible(owner))


def get_own(database: Database, owner: ConversationOwner, run_id: str) -> RecordedRun:
    """Return somebody's own run. Raises NotFoundError."""
    return _find_one(database, run_id, is_own(owner))


def _find_one(database: Database, run_id: str, which: ColumnElement[bool]) -> RecordedRun:
    if not is_storable(run_id):
        raise make_missing_run_error()
    query = _SELECT.add_columns(research_runs.c.record)
    with database.reading() as connection:
        row = connection.execute(query.where(research_runs.c.id == run_id, which)).one_or_none()
    if row is None:
        raise make_missing_run_error()
    return RecordedRun(to_research_run(row), row.record)


def list_page(
    database: Database,
    owner: ConversationOwner,
    project_id: str | None,
    before: ListPosition | None,
    limit: int,
) -> list[ResearchRun]:
    """Return the runs that are somebody's own, or those of a project that they may see; the last changed one first."""
    query = _SELECT.where(is_own(owner))
    if project_id is not None:
        query = _SELECT.where(_is_visible(owner), _PROJECT_ID.in_([project_id]))
    if before is not None:
        query = query.where(_stands_behind(before))
    ordered = query.order_by(research_runs.c.updated_at.desc(), research_runs.c.id.desc())
    with database.reading() as connection:
        return list(map(to_research_run, connection.execute(ordered.limit(limit))))


def _stands_behind(position: ListPosition) -> ColumnElement[bool]:
    same_time = research_runs.c.updated_at == position.updated_at
    return or_(
        research_runs.c.updated_at < position.updated_at,
        and_(same_time, research_runs.c.id < position.id),
    )


def follow(
    database: Database, owner: ConversationOwner, run_id: str, after: int
) -> FollowedResearch:
    """Return a run as it is now, with its events behind a number. Raises NotFoundError.

    What the events rest on is read together with them.
    """
    if not is_storable(run_id):
        raise make_missing_run_error()
    run = _SELECT.where(research_runs.c.id == run_id, _is_visible(owner))
    behind = select(research_events.c.payload).order_by(research_events.c.first)
    behind = behind.where(research_events.c.run_id == run_id, research_events.c.last > after)
    with database.reading() as connection:
        row = connection.execute(run).one_or_none()
        if row is None:
            raise make_missing_run_error()
        payloads = tuple(connection.scalars(behind))
    return FollowedResearch(
        state=row.state,
        history_document_ids=tuple(row.history_document_ids),
        document_ids=tuple(row.document_ids),
        payloads=payloads,
    )


@dataclass(frozen=True, slots=True)
class PersonChange:
    """What a person changes of a run of theirs that waits for them."""

    expected: ResearchState
    """The state in which it waits."""
    record: str
    """JSON."""
    tasks: int = 0
    """In the record."""


def change_record(
    database: Database, owner: ConversationOwner, run_id: str, change: PersonChange, now: datetime
) -> None:
    """Replace the record of one's own run, which goes on waiting.

    Raises:
        NotFoundError
        ConflictError: it is in another state by now.
    """
    _change(database, owner, run_id, change, {"updated_at": now})


def queue(
    database: Database, owner: ConversationOwner, run_id: str, change: PersonChange, now: datetime
) -> None:
    """Let one's own run go on with this record. Raises as `change_record`."""
    queued = {"state": "waiting", "queued_at": now, "updated_at": now}
    _change(database, owner, run_id, change, queued)


def _change(
    database: Database,
    owner: ConversationOwner,
    run_id: str,
    change: PersonChange,
    values: Mapping[str, object],
) -> None:
    own = is_own_run(owner, run_id)
    changed = update(research_runs).where(own, research_runs.c.state == change.expected)
    with database.writing() as connection:
        new = {"record": change.record, "tasks": change.tasks, **values}
        if connection.execute(changed.values(new)).rowcount:
            return
        state = connection.scalar(select(research_runs.c.state).where(own))
    raise (
        make_missing_run_error()
        if state is None
        else ConflictError(f"This research is {state} by now.")
    )


def stop(
    database: Database,
    owner: ConversationOwner,
    run_id: str,
    end: Callable[[int], str],
    now: datetime,
) -> None:
    """Stop one's own run: at once where nothing was found yet and nobody works on it; else its process, or the next one that is free,
    writes what there is. What has ended stays as it is.

    Args:
        end: given a number, returns the portion with the event of that number, which ends a run that is stopped at once.

    Raises:
        NotFoundError
    """
    if not is_storable(run_id):
        raise make_missing_run_error()
    own = is_own_run(owner, run_id)
    columns = (research_runs.c.state, research_runs.c.tasks_done, research_runs.c.last_event)
    with database.writing() as connection:
        # Nobody claims it meanwhile.
        row = connection.execute(select(*columns).where(own).with_for_update()).one_or_none()
        if row is None:
            raise make_missing_run_error()
        if row.state in AWAITING_PERSON or (row.state == "waiting" and not row.tasks_done):
            number = row.last_event + 1
            portion = {"run_id": run_id, "first": number, "last": number, "payload": end(number)}
            connection.execute(insert(research_events).values(portion))
            ended = {"state": "stopped", "ended_at": now, "updated_at": now, "last_event": number}
            connection.execute(update(research_runs).where(own).values(ended))
            send_news(connection, [run_id])
        elif row.state in {"waiting", "running"}:
            connection.execute(update(research_runs).where(own).values(state="stopping"))


def remove(database: Database, owner: ConversationOwner, run_id: str) -> None:
    """Remove one's own run with its events; what works on it is informed. What it has learned stays if it had ended. Raises NotFoundError."""
    if not is_storable(run_id):
        raise make_missing_run_error()
    own = is_own_run(owner, run_id)
    with database.writing() as connection:
        row = connection.execute(
            select(research_runs.c.ended_at).where(own).with_for_update()
        ).one_or_none()
        if row is None:
            raise make_missing_run_error()
        connection.execute(delete(research_runs).where(own))
        if row.ended_at is None:
            connection.execute(delete(knowledge_items).where(knowledge_items.c.run_id == run_id))


def mark_opened(database: Database, owner: ConversationOwner, run_id: str, now: datetime) -> None:
    """Record that its owner has seen how a run ended."""
    unseen = and_(research_runs.c.ended_at.is_not(None), research_runs.c.seen_at.is_(None))
    seen = update(research_runs).where(is_own_run(owner, run_id), unseen)
    with database.writing() as connection:
        connection.execute(seen.values(seen_at=now))


def count_open(database: Database, owner: ConversationOwner) -> int:
    """Return how many runs of somebody have not ended."""
    query = select(func.count()).select_from(research_runs)
    with database.reading() as connection:
        found = connection.scalar(query.where(is_own(owner), research_runs.c.ended_at.is_(None)))
    return found or 0


def to_research_run(row: Any) -> ResearchRun:
    return ResearchRun(
        id=row.id,
        owner=ConversationOwner(row.person_id),
        acting_as=None if row.acting_as is None else tuple(row.acting_as),
        conversation_id=row.conversation_id,
        project_id=row.shared_project_id,
        assistant_id=row.assistant_id,
        question=row.question,
        state=row.state,
        confirms_plan=row.confirms_plan,
        history_document_ids=tuple(row.history_document_ids),
        document_ids=tuple(row.document_ids),
        tasks=row.tasks,
        tasks_done=row.tasks_done,
        has_report=row.has_report,
        problem=row.problem,
        last_event=row.last_event,
        created_at=row.created_at,
        updated_at=row.updated_at,
        ended_at=row.ended_at,
        seen_at=row.seen_at,
    )
