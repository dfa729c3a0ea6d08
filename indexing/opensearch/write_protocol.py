"""Writes batches of changes so that every reader sees each document either before or after its change.

Writers do not lock each other out, and any of them may be killed at any moment. A document has one *record*,
which names the version of its chunks that counts; chunks of other versions are never shown. A change takes
the record through at most three states, each written on condition that the one before is still stored:

1. *announced*: as it was, and it names the version whose chunks are about to be written. Readers see no
   difference; whoever comes after a crash knows which chunks may be left over.
2. *committed*: what readers see from here on. It names the version whose chunks are to be deleted.
3. *finished*: nothing is left to do.

A change that touches no chunks is committed and finished in one write. If another writer changed the record
meanwhile, the conditional write is refused and the change is planned again. A record that stays unfinished
without changing was left by a writer that is gone; the next writer takes it over.
"""

import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain

from opensearchpy import OpenSearch

from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Amend, Delete, Written
from indexing.index.validation import Batch, PreparedChange, PreparedReplace, is_stale
from indexing.opensearch.bulk_requests import (
    BulkAction,
    BulkClient,
    delete_chunks,
    label_chunks,
    put_chunks,
)
from indexing.opensearch.document_records import DocumentRecords, to_stored_record
from indexing.opensearch.mapping import Quantisation
from indexing.opensearch.record_mapping import (
    NO_VERSION,
    ChunkLabels,
    DocumentRecord,
    StoredRecord,
    Version,
    record_of,
)

TAKEOVER_SECONDS = 1.0
"""Without a change, after which another writer's record is taken over; doubled with each lost race."""
HEARTBEAT_SECONDS = 5.0
"""Between two changes of an announced record while its chunks are written."""
POLL_SECONDS = 0.05
"""Approximately, between two looks at a document that another writer is writing."""
CLEAN_UP_SECONDS = 10.0
"""Between two searches for records left unfinished by writers of other documents."""
LEFT_OVER_SECONDS = 60.0
"""Without a change, after which such a record is taken over."""
CLEAN_UP_SIZE = 200
"""Records of one such search."""


@dataclass(frozen=True, slots=True)
class RecordChange:
    """The states that one change takes a document's record through."""

    item: PreparedChange
    stored: StoredRecord | None
    """The record before; `None` if there is none."""
    announced: DocumentRecord | None
    """`None` if nothing has to be written before the commit."""
    committed: DocumentRecord

    @property
    def id(self) -> str:
        return self.committed.id


@dataclass(frozen=True, slots=True)
class WritePlan:
    changes: Sequence[RecordChange]
    stale: tuple[str, ...]
    missing: tuple[str, ...]

    def to_result(self, done: Sequence[RecordChange]) -> Written:
        """Count what was written when these changes of the plan are done."""
        items = [change.item for change in done]
        return Written(
            replaced=sum(isinstance(item, PreparedReplace) for item in items),
            chunks=sum(len(item.words) for item in items if isinstance(item, PreparedReplace)),
            deleted=sum(isinstance(item, Delete) for item in items),
            amended=sum(isinstance(item, Amend) for item in items),
            stale=self.stale,
            missing=self.missing,
        )


def plan_writes(batch: Iterable[PreparedChange], stored: Mapping[str, StoredRecord]) -> WritePlan:
    """Plan a batch with at most one change per document, of which no record is unfinished."""
    changes: list[RecordChange] = []
    stale: list[str] = []
    missing: list[str] = []
    for item in batch:
        before = stored.get(item.document_id)
        if before and is_stale(item, before.record.generation):
            stale.append(item.document_id)
        elif isinstance(item, PreparedReplace):
            changes.append(_plan_replacement(item, before))
        elif before is None:
            missing.append(item.document_id)
        elif isinstance(item, Delete):
            changes.append(_plan_deletion(item, before))
        else:
            changes.append(_plan_amendment(item, before))
    return WritePlan(changes, tuple(stale), tuple(missing))


def combine_labels(before: DocumentRecord, after: DocumentRecord) -> ChunkLabels:
    """Return labels by which both readers of the old state and of the new state find the chunks."""
    return ChunkLabels.of(before).joined_with(ChunkLabels.of(after))


def _plan_replacement(item: PreparedReplace, stored: StoredRecord | None) -> RecordChange:
    # Random, so that no two attempts ever write the same chunks.
    version = Version(secrets.token_hex(6), len(item.words))
    new = record_of(item, version)
    old = (stored.record.version,) if stored and stored.record.version.chunks else ()
    before = stored.record if stored else replace(new, state="coming", version=NO_VERSION)
    announced = replace(before, leaving=(version,), unfinished=True)
    committed = replace(new, leaving=old, unfinished=bool(old))
    return RecordChange(item, stored, announced if version.chunks else None, committed)


def _plan_deletion(change: Delete, stored: StoredRecord) -> RecordChange:
    before = stored.record
    gone = replace(before, state="gone", leaving=(before.version,), unfinished=True)
    return RecordChange(change, stored, None, gone)


def _plan_amendment(change: Amend, stored: StoredRecord) -> RecordChange:
    before = stored.record
    after = _amend(before, change)
    old, new = ChunkLabels.of(before), ChunkLabels.of(after)
    relabels = old != new and before.version.chunks > 0
    # Chunks must be found by more readers before the commit, and by fewer only after it.
    widens = old.joined_with(new) != replace(old, boost=new.boost)
    announced = replace(before, unfinished=True) if relabels and widens else None
    return RecordChange(change, stored, announced, replace(after, unfinished=relabels))


def _amend(record: DocumentRecord, change: Amend) -> DocumentRecord:
    amended = {
        name: value
        for name in ("access", "sets", "projects", "personas", "boost", "hidden")
        if (value := getattr(change, name)) is not None
    }
    return replace(record, **amended)


class BatchWriter:
    """Writes batches to one index. For one thread at a time."""

    def __init__(
        self,
        records: DocumentRecords,
        bulk: BulkClient,
        quantisation: Quantisation,
        patience: float,
    ) -> None:
        """Prepare to write; `patience` is for how many seconds to wait for other writers without progress."""
        self._records = records
        self._bulk = bulk
        self._quantisation: Quantisation = quantisation
        self._patience = patience

    def write(self, batch: Batch) -> Written:
        """Write a batch as `IndexWriter.write` does, without a refresh.

        Raises:
            TemporarilyUnavailableError: another writer kept changing a document, or the cluster is busy.
            ActionRequiredError
        """
        others, result, progressed = IdleWatch(TAKEOVER_SECONDS), Written(), time.monotonic()
        while True:
            plan = self._plan(batch, others)
            done = self._perform(plan.changes)
            result += plan.to_result(done)
            settled = {*(change.id for change in done), *plan.stale, *plan.missing}
            others.note_lost(change.id for change in plan.changes if change.id not in settled)
            batch = [item for item in batch if item.document_id not in settled]
            if not batch:
                return result
            progressed = time.monotonic() if settled else progressed
            self._wait(batch, progressed)

    def _plan(self, batch: Batch, others: "IdleWatch") -> WritePlan:
        """Plan the changes of all documents except those that another writer is writing."""
        stored = self._records.read(item.document_id for item in batch)
        unfinished = [each for each in stored.values() if each.record.unfinished]
        if abandoned := [each for each in unfinished if others.is_abandoned(each)]:
            take_over(self._records, self._bulk, abandoned)
        busy = {each.record.id for each in unfinished}
        return plan_writes([item for item in batch if item.document_id not in busy], stored)

    def _perform(self, changes: Sequence[RecordChange]) -> list[RecordChange]:
        """Carry out the changes, and return those that no other writer interfered with."""
        attempt = _Attempt(changes, self._records, self._bulk, self._quantisation)
        attempt.announce()
        attempt.write_chunks()
        done = attempt.commit()
        attempt.clean_up()
        return done

    def _wait(self, batch: Batch, since: float) -> None:
        if time.monotonic() - since > self._patience:
            names = ", ".join(item.document_id[:100] for item in batch[:3])
            raise TemporarilyUnavailableError(
                f"Other writers keep changing the same documents: {names}.",
                timedelta(seconds=30),
            )
        time.sleep(POLL_SECONDS * random.uniform(0.5, 1.5))


class _Attempt:
    """Carries out the changes of one plan. A change is lost when another writer changes its record."""

    def __init__(
        self,
        changes: Sequence[RecordChange],
        records: DocumentRecords,
        bulk: BulkClient,
        quantisation: Quantisation,
    ) -> None:
        self._changes = {change.id: change for change in changes}
        self._stored = {change.id: change.stored for change in changes}
        """The records as this writer last wrote them."""
        self._records = records
        self._bulk = bulk
        self._quantisation: Quantisation = quantisation
        self._next_heartbeat = time.monotonic() + HEARTBEAT_SECONDS

    def announce(self) -> None:
        self._put_announced()

    def write_chunks(self) -> None:
        """Write new chunks, which do not count yet, and labels that suit both states."""
        lost: list[RecordChange] = []
        self._bulk.send(self._chunk_actions(lost))
        # Only now: what was in flight must have arrived before it is undone.
        self._undo(lost)

    def commit(self) -> list[RecordChange]:
        """Write what readers see from here on, and return the changes that were not lost."""
        lost = self._put({each: change.committed for each, change in self._changes.items()})
        self._undo(lost)
        return list(self._changes.values())

    def clean_up(self) -> None:
        stored = [self._stored[each] for each in self._changes]
        clean_up(
            self._records,
            self._bulk,
            [each for each in stored if each and each.record.unfinished],
        )

    def _put_announced(self) -> list[RecordChange]:
        return self._put(
            {each: change.announced for each, change in self._changes.items() if change.announced}
        )

    def _put(self, records: Mapping[str, DocumentRecord]) -> list[RecordChange]:
        """Write the records on condition, and return the changes that were lost by it."""
        writes = [(record, self._stored[each]) for each, record in records.items()]
        for each, stored in zip(records, self._records.put(writes), strict=True):
            self._stored[each] = stored
        return [self._changes.pop(each) for each in records if self._stored[each] is None]

    def _chunk_actions(self, lost: list[RecordChange]) -> Iterator[BulkAction]:
        for change in list(self._changes.values()):
            for action in self._actions_of(change):
                if time.monotonic() > self._next_heartbeat:
                    lost += self._send_heartbeat()
                if change.id not in self._changes:
                    break
                yield action

    def _actions_of(self, change: RecordChange) -> Iterator[BulkAction]:
        match change.item:
            case PreparedReplace() as item:
                return put_chunks(change.committed, item, self._quantisation)
            case Amend() if change.announced:
                labels = combine_labels(change.announced, change.committed)
                return label_chunks(change.announced, labels)
            case _:
                return iter(())

    def _send_heartbeat(self) -> list[RecordChange]:
        """Write the announced records again: other writers take over what does not change."""
        self._next_heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        return self._put_announced()

    def _undo(self, lost: Sequence[RecordChange]) -> None:
        """Undo lost changes: the writer that took over could not see what was still in flight."""
        replaced = [change.committed for change in lost if isinstance(change.item, PreparedReplace)]
        self._bulk.send(chain.from_iterable(delete_chunks(each, each.version) for each in replaced))
        amended = [
            change.stored for change in lost if isinstance(change.item, Amend) and change.stored
        ]
        _label_again(self._records, self._bulk, amended)


def clean_up(records: DocumentRecords, bulk: BulkClient, stored: Sequence[StoredRecord]) -> None:
    """Do what unfinished records still require; may be repeated.

    A record names the versions whose chunks are to be deleted. If it names none, its chunks are to be
    labelled as the record says. Called only by the writer of these states of the records.
    """
    labelled = [each for each in stored if _needs_labels(each)]
    bulk.send(chain.from_iterable(map(_clean_up_actions, stored)))
    overtaken = {each.record.id for each in records.finish(stored)}
    _label_again(records, bulk, [each for each in labelled if each.record.id in overtaken])


def take_over(records: DocumentRecords, bulk: BulkClient, stored: Sequence[StoredRecord]) -> None:
    """Finish what other writers left. A writer that is only slow finds at its next step that it lost."""
    claimed = records.put([(each.record, each) for each in stored])
    clean_up(records, bulk, [each for each in claimed if each])


def _clean_up_actions(stored: StoredRecord) -> Iterator[BulkAction]:
    record = stored.record
    for version in record.leaving:
        yield from delete_chunks(record, version)
    if _needs_labels(stored):
        yield from label_chunks(record, ChunkLabels.of(record))


def _needs_labels(stored: StoredRecord) -> bool:
    return stored.record.state == "document" and not stored.record.leaving


def _label_again(
    records: DocumentRecords, bulk: BulkClient, overtaken: Sequence[StoredRecord]
) -> None:
    """Label by the newest record until it stops changing: two writers' labels may arrive in any order."""
    while overtaken:
        current = records.read(each.record.id for each in overtaken)
        existing = [each for each in current.values() if each.record.state == "document"]
        bulk.send(
            chain.from_iterable(
                label_chunks(each.record, ChunkLabels.of(each.record)) for each in existing
            )
        )
        after = records.read(each.record.id for each in existing)
        overtaken = [each for each in existing if after.get(each.record.id) not in (each, None)]


@dataclass(frozen=True, slots=True)
class _Sighting:
    sequence: int
    since: float


@dataclass(frozen=True, slots=True)
class IdleWatch:
    """Distinguishes records whose writer is at work from records whose writer is gone: only the former change."""

    seconds: float
    """Without a change, after which a writer is taken to be gone."""
    _sightings: dict[str, _Sighting] = field(default_factory=dict)
    _losses: dict[str, int] = field(default_factory=dict)

    def is_abandoned(self, stored: StoredRecord) -> bool:
        """Return whether the record has not changed for so long that it may be taken over."""
        each = stored.record.id
        sighting = self._sightings.get(each)
        if sighting is None or sighting.sequence != stored.sequence:
            self._sightings[each] = _Sighting(stored.sequence, time.monotonic())
            return False
        # Without this, two writers whose writes take longer would take over from each other for ever.
        seconds = self.seconds * float(2 ** self._losses.get(each, 0))
        return time.monotonic() - sighting.since >= seconds

    def note_lost(self, ids: Iterable[str]) -> None:
        """Wait longer for these: another writer took them over while they were written."""
        for each in ids:
            self._losses[each] = self._losses.get(each, 0) + 1


class LeftoverCleaner:
    """Finds unfinished records of documents that no writer works on any more, between batches."""

    def __init__(
        self, client: OpenSearch, index: str, idle_seconds: float = LEFT_OVER_SECONDS
    ) -> None:
        self._client = client
        self._index = index
        self._watch = IdleWatch(idle_seconds)
        self._searched = -CLEAN_UP_SECONDS

    def run(self, records: DocumentRecords, bulk: BulkClient) -> None:
        """Take over records that have not changed for long; searches at most once in a while."""
        if time.monotonic() - self._searched < CLEAN_UP_SECONDS:
            return
        self._searched = time.monotonic()
        found = bulk.retry_while_busy(self._search)
        if found:
            # A search sees the last refresh; reading by id sees the newest state.
            current = records.read(each.record.id for each in found).values()
            unfinished = [each for each in current if each.record.unfinished]
            take_over(records, bulk, [e for e in unfinished if self._watch.is_abandoned(e)])

    def _search(self) -> list[StoredRecord]:
        body = {
            "query": {"term": {"unfinished": True}},
            "size": CLEAN_UP_SIZE,
            "seq_no_primary_term": True,
        }
        response = self._client.search(body=body, index=self._index)
        return [to_stored_record(hit) for hit in response["hits"]["hits"]]
