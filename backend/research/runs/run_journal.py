"""What a run does, as it is stored: its events in portions, its record with each finished step, and the lease with both."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.conversations.turn_events import EncodedEvent
from backend.research.events import ResearchEvent, ResearchFailed, TaskStarted
from backend.research.record.record_json import write_record
from backend.research.record.research_record import ResearchRecord
from backend.research.runs.run_events import (
    DocumentedEvent,
    DocumentPlaces,
    Encode,
    encode_portion,
    encode_state,
    list_documents,
)
from backend.store.database import Database
from backend.store.research import research_leases
from backend.store.research.research_leases import (
    LEASE,
    Checkpoint,
    ClaimedResearch,
    EventPortion,
    ResearchProgress,
    ResearchSignal,
)
from backend.store.research.research_runs import ResearchState
from connectors.errors import ActionRequiredError, HandledError, TemporarilyUnavailableError
from indexing.runtime.deadline import CancelToken

PAUSE = 0.25
"""Seconds at least between two portions."""
LOOK = 1.0
"""Seconds after which a run that does nothing looks whether it is to stop; that renews its lease."""
_RETRY = 1.0


class ResearchLostError(HandledError):
    """The run was deleted, or another process works on it."""


@dataclass(frozen=True, slots=True)
class LeftRun:
    """How a run is left."""

    state: ResearchState
    problem: str | None
    """Why there is no report."""
    event: EncodedEvent
    """The one that says so."""


class RunJournal:
    """Written by the threads of one run, and stored by a thread of its own.

    Args:
        database: called each time.
        stored: called with the id of the run when more of it is stored; it neither waits nor fails.
    """

    def __init__(
        self,
        database: Callable[[], Database],
        claimed: ClaimedResearch,
        encode: Encode,
        stored: Callable[[str], object],
    ) -> None:
        self._database = database
        self._claim = claimed.claim
        self._encode = encode
        self._announce = stored
        self.stop = CancelToken()
        """Cancelled when the person wants the report of what there is."""
        self.interrupt = CancelToken()
        """Cancelled when the run has to end here: it is lost, or the process ends."""
        self.failure: ResearchFailed | None = None
        """Why there is no report, once that is known."""
        self._changed = threading.Condition()
        self._pending: list[DocumentedEvent] = []
        self._first = claimed.run.last_event + 1
        """The number of the first pending event."""
        self._places = DocumentPlaces(claimed.run.document_ids)
        self._stored_places = len(self._places)
        self._task_documents: dict[int, tuple[str, ...]] = {}
        self._is_over = False
        self._is_left = False
        self._storing = threading.Lock()
        self._stored_at = time.monotonic()
        self._is_taken_over = claimed.is_taken_over
        if claimed.run.state == "stopping":
            self.stop.cancel()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Store what is written within the block, and renew the lease."""
        thread = threading.Thread(target=self._keep, name="research journal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
            thread.join()

    def emit(self, event: ResearchEvent) -> None:
        if isinstance(event, ResearchFailed):
            self.failure = event
        encoded = self._encode(event)
        if encoded is not None:
            self._add(event, encoded)

    def _add(self, event: ResearchEvent, encoded: EncodedEvent) -> None:
        with self._changed:
            documents = [*list_documents(event), *self._list_task_documents(event)]
            self._pending.append(DocumentedEvent(encoded, self._places.find(documents)))
            self._changed.notify_all()

    def _list_task_documents(self, event: ResearchEvent) -> tuple[str, ...]:
        """Return what the question of the task rests on that an event belongs to: all of the task may repeat it."""
        if isinstance(event, TaskStarted):
            self._task_documents[event.task.number] = event.task.rests_on
        number = getattr(event, "task", None)
        return self._task_documents.get(number, ()) if isinstance(number, int) else ()

    def note_claimed(self) -> None:
        """Add the event of a run that is worked on, or goes on after its process had to end."""
        self._note(
            EncodedEvent("resumed", "{}") if self._is_taken_over else encode_state("running")
        )

    def _note(self, event: EncodedEvent) -> None:
        with self._changed:
            self._pending.append(DocumentedEvent(event))
            self._changed.notify_all()

    def save(self, record: ResearchRecord) -> None:
        """Store the record with all events before it.

        Raises:
            ResearchLostError
            TemporarilyUnavailableError: the database was away for longer than the lease lasts.
        """
        self._store_patiently(_make_checkpoint(record, None, None))

    def leave(self, record: ResearchRecord, left: "LeftRun") -> None:
        """Store in which state the run is left, with all events before it, and that which says so. Raises as `save`."""
        with self._storing:
            # Nobody reads the last event before the run is in that state.
            self._is_left = True
        self._note(left.event)
        self._store_patiently(_make_checkpoint(record, left.state, left.problem))

    def _store_patiently(self, checkpoint: Checkpoint) -> None:
        end = time.monotonic() + LEASE.total_seconds()
        while True:
            try:
                self._store(checkpoint)
                return
            except TemporarilyUnavailableError:
                if time.monotonic() + _RETRY > end:
                    raise
                time.sleep(_RETRY)

    def _keep(self) -> None:
        while self._wait():
            # A lease outlasts the usual outage of the database: what was not stored now is so later.
            with suppress(TemporarilyUnavailableError, ActionRequiredError, ResearchLostError):
                self._store(None)
            if time.monotonic() - self._stored_at > LEASE.total_seconds():
                self.interrupt.cancel()
            time.sleep(PAUSE)

    def _wait(self) -> bool:
        """Wait for news, or until it is time to look; whether the run goes on."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._is_over, LOOK)
            return not self._is_over

    def _store(self, checkpoint: Checkpoint | None) -> None:
        with self._storing:
            if self._is_left and checkpoint is None:
                return
            portion, document_ids, count = self._take()
            progress = ResearchProgress(
                portion=portion, document_ids=document_ids, checkpoint=checkpoint
            )
            began = time.monotonic()
            signal = research_leases.store(
                self._database(), self._claim, progress, datetime.now(UTC)
            )
            self._stored_at = began
            self._confirm(count, document_ids)
        self._heed(signal)
        if portion is not None or checkpoint is not None:
            self._announce(self._claim.run_id)

    def _take(self) -> tuple[EventPortion | None, list[str] | None, int]:
        """Return what is to be stored: the pending events, the documents where there are more, and how many events these are."""
        with self._changed:
            count = len(self._pending)
            document_ids = self._places.document_ids
            grown = document_ids if len(document_ids) > self._stored_places else None
            if not count:
                return None, grown, 0
            payload = encode_portion(self._first, self._pending)
            return EventPortion(self._first, self._first + count - 1, payload), grown, count

    def _confirm(self, count: int, document_ids: list[str] | None) -> None:
        with self._changed:
            del self._pending[:count]
            self._first += count
            if document_ids is not None:
                self._stored_places = len(document_ids)

    def _heed(self, signal: ResearchSignal) -> None:
        match signal:
            case ResearchSignal.RUNNING:
                pass
            case ResearchSignal.STOPPING:
                self.stop.cancel()
            case ResearchSignal.LOST:
                self.interrupt.cancel()
                raise ResearchLostError("This research goes on elsewhere, or was deleted.")


def _make_checkpoint(
    record: ResearchRecord, state: ResearchState | None, problem: str | None
) -> Checkpoint:
    return Checkpoint(
        record=write_record(record),
        tasks=len(record.tasks),
        tasks_done=len(record.tasks) - len(record.pending_tasks),
        has_report=record.report is not None,
        state=state,
        problem=problem,
    )
