"""What is due now, as the messages that wake workers of other processes: a queue and a source, no more.

The database decides what is done. A message that is lost is told again; one that comes twice, or late, finds
nothing due.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from backend.store import batches, schedule, sources
from backend.store.database import Database
from backend.sync.due_work import FETCHES
from backend.sync.process_identity import is_gone

Queue: TypeAlias = Literal["fetch", "index", "light"]
QUEUES: tuple[Queue, ...] = get_args(Queue)


@dataclass(frozen=True, slots=True)
class Call:
    queue: Queue
    source: int
    """Its number. What was read is indexed of all sources in turn, whichever is named."""


def due(database: Database) -> list[Call]:
    """One of each source that is due, longest due first, and one of each that has something to index."""
    numbers = {source.name: source.id for source in sources.listing(database)}
    found: list[Call] = []
    for each in schedule.due(database, datetime.now(UTC), is_gone):
        queue: Queue = "fetch" if each.kind in FETCHES else "light"
        if (number := numbers.get(each.source)) is not None:
            found.append(Call(queue, number))
    return [*found, *(Call("index", number) for number in batches.free(database))]
