"""Messages that wake workers of other processes, and why a source that is due has not started.

A message names a queue and a source, no more: the database decides what is done. A lost message is sent again,
and one that comes twice or late finds nothing due.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from backend.store.database import Database
from backend.store.documents import batches, document_set_jobs
from backend.store.sync import schedule, sources
from backend.store.sync.workers import LiveWorker
from backend.sync.due_work import FETCH_KINDS
from backend.sync.run_lease import is_gone
from backend.sync.worker_heartbeat import SERVE

Queue: TypeAlias = Literal["fetch", "index", "light"]
Task: TypeAlias = Queue | Literal["sets"]
QUEUES: tuple[Queue, ...] = get_args(Queue)
_QUEUE_OF: Mapping[Task, Queue] = MappingProxyType(
    {**{queue: queue for queue in QUEUES}, "sets": "light"}
)
"""Whose workers do each task."""


@dataclass(frozen=True, slots=True)
class WakeupMessage:
    task: Task
    source: int = 0
    """Its id; 0 for a task of no source. Indexing takes all sources in turn, whichever is named."""

    @property
    def queue(self) -> Queue:
        return _QUEUE_OF[self.task]


def list_due(database: Database) -> list[WakeupMessage]:
    """Return a message for each source that is due, longest due first, and for each with batches to index."""
    numbers = {source.name: source.id for source in sources.list_sources(database)}
    found: list[WakeupMessage] = []
    for each in schedule.list_due(database, datetime.now(UTC), is_gone):
        queue: Queue = "fetch" if each.kind in FETCH_KINDS else "light"
        if (number := numbers.get(each.source)) is not None:
            found.append(WakeupMessage(queue, number))
    if document_set_jobs.is_due(database):
        found.append(WakeupMessage("sets"))
    return [
        *found,
        *(WakeupMessage("index", number) for number in batches.list_ready_sources(database)),
    ]


_USUAL_DELAY = timedelta(minutes=1)
"""A run that is due usually starts within this time."""
COMMANDS: Mapping[str, str] = {"beat": "quarry beat"} | {
    queue: f"quarry worker --queue {queue}" for queue in QUEUES
}
"""The command that starts the processes of each queue."""


def explain_overdue(
    starts: Mapping[str, datetime | None], present: Sequence[LiveWorker], now: datetime
) -> str | None:
    """Say since when a run has been due and why it has not started; None if none has been due for long."""
    since = min((start for start in starts.values() if start), default=now)
    if now - since < _USUAL_DELAY:
        return None
    return f"Due since {since.astimezone():%Y-%m-%d %H:%M}. {_reason(present)}"


def explain_no_worker(present: Sequence[LiveWorker]) -> str | None:
    """Say why nothing that is asked for starts: no worker runs, or one is missing; None if all are there."""
    queues = {one.queue for one in present}
    if SERVE in queues or not (queues == set() or missing_commands(queues)):
        return None
    return _reason(present)


def missing_commands(queues: set[str]) -> list[str]:
    """Return the commands to start, given the queues that have workers."""
    return [command for queue, command in COMMANDS.items() if queue not in queues]


def _reason(present: Sequence[LiveWorker]) -> str:
    queues = {one.queue for one in present}
    if trouble := next((one.trouble for one in present if one.trouble), None):
        return trouble
    if not queues:
        return (
            "No worker is running. Start `quarry serve` (with a broker: `quarry worker` and"
            " `quarry beat`), or sync now with `quarry sync`."
        )
    if SERVE not in queues and (commands := missing_commands(queues)):
        return f"Start {' and '.join(commands)}."
    return "The workers are busy with other sources, or not ready yet."
