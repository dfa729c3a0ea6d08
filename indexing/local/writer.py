"""The writer of the local index: every reader sees all of a batch or nothing, whatever crashes in between.

A batch is written in four steps:

1. `stage_rows`: a transaction adds the new rows to the tables, which no reader sees yet;
2. `stage_files`: the full-text index and the vector files get them too;
3. `commit`: a transaction makes the documents point at their new rows;
4. `maintenance.clean_up`: old versions and what else the commit made obsolete are removed.

Rows before files, because the outbox in the tables lets the next writer remove entries of the
full-text index that a crash left without a commit. Files before the commit, because readers trust that
everything the tables show is in the files: between the steps the files hold what readers may see before the
commit and after it. A document that is being amended is in the full-text index with its old labels and its
new ones; the columns, which change with the commit, decide who may see it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from connectors.errors import NotConfiguredError
from indexing.embedding.embedder import Vectors
from indexing.index.protocols import (
    IndexChange,
    IndexedDocument,
    Replace,
    SelectedDocument,
    Selection,
    Written,
)
from indexing.index.validation import Batch, BatchLimits, prepare_batches
from indexing.local import sql, vector_file
from indexing.local.database import (
    LOCK_TIMEOUT,
    Connection,
    Row,
    connect,
    connect_writer,
    decode_access,
    read_document_chunks,
    read_state,
    read_transaction,
    to_chunk_row,
    to_details,
    to_microseconds,
    transaction,
    translate_errors,
    write_state,
    writer_lock,
)
from indexing.local.maintenance import clean_up, compact, repair
from indexing.local.selection import count_documents, select_documents
from indexing.local.tantivy_index import Entry, FulltextDamagedError, FulltextIndex, read_entries
from indexing.local.write_plan import (
    Amendment,
    LabelWriter,
    NewVersion,
    WritePlan,
    place_versions,
    plan_batch,
    resolve_amendment,
)
from indexing.text.analysis import Analysis

BATCH = BatchLimits(changes=1_024, chunks=4_096)
"""Enough chunks to make the commits of a batch cheap, few enough to keep in memory."""
SCAN_PAGE = 1_000
"""Documents read at a time, so that a long scan blocks no writer."""


@dataclass(frozen=True, slots=True)
class StagedBatch:
    versions: list[NewVersion]
    amendments: list[Amendment]


def write_batch(folder: Path, connection: Connection, batch: Batch) -> Written:
    """Perform steps 1 to 3. The caller holds the writer lock and has called `maintenance.repair`."""
    plan = plan_batch(connection, batch)
    staged = stage_rows(connection, plan)
    stage_files(folder, connection, staged)
    commit(connection, plan, staged)
    return plan.written


def stage_rows(connection: Connection, plan: WritePlan) -> StagedBatch:
    """Store new rows, unseen, and note them in the outbox in case the commit does not follow."""
    with transaction(connection):
        labels = LabelWriter(connection)
        versions = place_versions(connection, plan, labels)
        amendments = [resolve_amendment(change, stored, labels) for change, stored in plan.amended]
        _add_rows(connection, versions)
        new_entries = [(version.first_row, version.count) for version in versions]
        new_entries += [(a.stored.first_row, a.stored.count) for a in amendments if a.added]
        connection.executemany(sql.ADD_OUTBOX, (entry for entry in new_entries if entry[1]))
    return StagedBatch(versions, amendments)


def _add_rows(connection: Connection, versions: Sequence[NewVersion]) -> None:
    numbered = [(version, enumerate(version.prepared.change.chunks)) for version in versions]
    connection.executemany(
        sql.ADD_CHUNK,
        (
            to_chunk_row(version.first_row + position, version.ordinal, chunk)
            for version, chunks in numbered
            for position, chunk in chunks
        ),
    )
    words = (enumerate(version.prepared.words, version.first_row) for version in versions)
    connection.executemany(sql.ADD_WORDS, chain.from_iterable(words))
    blobs = (
        enumerate(map(np.ndarray.tobytes, version.halves), version.first_row)
        for version in versions
    )
    connection.executemany(sql.ADD_VECTOR, chain.from_iterable(blobs))


def stage_files(folder: Path, connection: Connection, staged: StagedBatch) -> None:
    """Write to the full-text index and the vector files; all is on disk when this returns."""
    state = read_state(connection)
    versions = [version for version in staged.versions if version.count]
    extended = [amendment for amendment in staged.amendments if amendment.added]
    if versions or extended:
        entries = chain(_new_entries(versions), _extended_entries(connection, extended))
        outdated = [amendment.stored.first_row for amendment in extended]
        FulltextIndex(folder, state.fulltext_epoch).write(outdated, entries)
    if versions:
        matrix = np.concatenate([version.halves for version in versions])
        vector_file.append(folder, state.vector_epoch, state.slots, matrix)


def _new_entries(versions: Sequence[NewVersion]) -> Iterator[Entry]:
    for version in versions:
        for position in range(version.count):
            yield Entry(
                row=version.first_row + position,
                document=version.ordinal,
                version=version.first_row,
                words=version.prepared.words[position],
                plain=version.prepared.plain[position],
                labels=version.labels,
                created=to_microseconds(version.representative.created_at),
                updated=to_microseconds(version.representative.updated_at),
            )


def _extended_entries(connection: Connection, amendments: Sequence[Amendment]) -> Iterator[Entry]:
    for amendment in amendments:
        for entry in read_entries(connection, amendment.stored.first_row):
            yield replace(entry, labels=[*entry.labels, *amendment.added])


def commit(connection: Connection, plan: WritePlan, staged: StagedBatch) -> None:
    """Show the batch to every reader, in one transaction."""
    with transaction(connection):
        counter = _advance_state(connection, plan, staged)
        connection.executemany(
            sql.PUT_DOCUMENT, (_document_row(version, counter) for version in staged.versions)
        )
        connection.executemany(sql.USE_ORDINAL, ((version.ordinal,) for version in staged.versions))
        connection.executemany(
            sql.AMEND_DOCUMENT, (_amended_values(each, counter) for each in staged.amendments)
        )
        for stored in plan.deleted:
            connection.execute(sql.DELETE_DOCUMENT, (stored.ordinal,))
            connection.execute(sql.ADD_TOMBSTONE, (stored.ordinal, counter))
        _update_outbox(connection, plan, staged)


def _advance_state(connection: Connection, plan: WritePlan, staged: StagedBatch) -> int:
    """Write the next state; return its counter."""
    state = read_state(connection)
    added = sum(version.count for version in staged.versions)
    following = replace(
        state,
        slots=state.slots + added,
        chunks=state.chunks + added - sum(stored.count for stored in plan.outdated),
    )
    return write_state(connection, following).counter


def _update_outbox(connection: Connection, plan: WritePlan, staged: StagedBatch) -> None:
    """Note old versions, and documents that the full-text index knows by labels they no longer have."""
    connection.executemany(sql.CLEAR_OUTBOX, ((version.first_row,) for version in staged.versions))
    obsolete = plan.outdated + [a.stored for a in staged.amendments if a.changes_labels]
    connection.executemany(
        sql.ADD_OUTBOX, ((stored.first_row, stored.count) for stored in obsolete if stored.count)
    )


def _document_row(version: NewVersion, counter: int) -> Row:
    change, chunk = version.prepared.change, version.representative
    return (
        version.ordinal,
        change.document_id,
        change.generation,
        change.content_hash,
        version.first_row,
        version.count,
        version.first_slot,
        version.reader_set,
        version.label_set,
        version.source,
        version.media_type,
        version.people_set,
        chunk.boost,
        chunk.hidden,
        to_microseconds(chunk.created_at),
        to_microseconds(chunk.updated_at),
        counter,
        to_details(chunk, version.prepared.languages),
    )


def _amended_values(amendment: Amendment, counter: int) -> dict[str, object]:
    return {
        "ordinal": amendment.stored.ordinal,
        "reader_set": amendment.reader_set,
        "label_set": amendment.label_set,
        "boost": amendment.change.boost,
        "hidden": amendment.change.hidden,
        "details": amendment.details,
        "changed": counter,
    }


def allow_writes() -> None:
    """Do nothing, as the check of a folder that may always be written."""


class LocalIndexWriter:
    """An `IndexWriter` over a folder. Several may be used at once; they write one after the other."""

    def __init__(
        self,
        folder: Path,
        dimension: int,
        analysis: Analysis,
        lock_timeout: float = LOCK_TIMEOUT,
        check: Callable[[], None] = allow_writes,
    ) -> None:
        """Use `open_writer`.

        Args:
            analysis: that of the words that the index holds.
            lock_timeout: seconds to wait for another writer.
            check: raises if the folder may no longer be written; called while the writer lock is held.
        """
        self._folder = folder
        self._dimension = dimension
        self._analysis = analysis
        self._lock_timeout = lock_timeout
        self._check = check

    def write(self, changes: Iterable[IndexChange]) -> Written:
        """See `IndexWriter.write`. Changes are written in batches, each completely or not at all.

        Raises:
            ValueError: see `IndexWriter.write`; or chunks of one document that disagree on a field of the whole
                document, or a negative boost. Batches before the invalid one are written.
            TemporarilyUnavailableError: another writer did not finish in time, or the disk is busy.
            ActionRequiredError: the index cannot be written.
        """
        written = Written()
        for batch in prepare_batches(changes, self._dimension, BATCH, self._analysis):
            with self._translate_errors():
                written += self._write(batch)
        return written

    def scan(self) -> Iterator[IndexedDocument]:
        """See `IndexWriter.scan`. Documents that are written meanwhile may or may not be included."""
        with closing(connect(self._folder)) as connection:
            last = ""
            while True:
                with self._translate_errors():
                    found = connection.execute(sql.SCAN, (last, SCAN_PAGE)).fetchall()
                if not found:
                    return
                for each, generation, chunks, digest, tokens in found:
                    yield IndexedDocument(each, generation, chunks, digest, decode_access(tokens))
                last = found[-1][0]

    def select(self, selection: Selection) -> Iterator[SelectedDocument]:
        """See `IndexWriter.select`."""
        with self._translate_errors():
            yield from select_documents(self._folder, selection)

    def count(self, selections: Sequence[Selection]) -> int:
        """See `IndexWriter.count`."""
        with self._translate_errors():
            return count_documents(self._folder, selections)

    def export(self, after: str = "") -> Iterator[Replace]:
        """See `IndexWriter.export`. Each document is read in one transaction; one at a time is in memory."""
        with closing(connect(self._folder)) as connection:
            while True:
                with self._translate_errors(), read_transaction(connection):
                    found = self._export_next(connection, after)
                if found is None:
                    return
                yield found
                after = found.document_id

    def _export_next(self, connection: Connection, after: str) -> Replace | None:
        found = connection.execute(sql.EXPORTED, (after,)).fetchone()
        if found is None:
            return None
        ordinal, document_id, generation, content_hash, hidden, first, end = found
        chunks = read_document_chunks(connection, ordinal)
        blobs = connection.execute(sql.VECTORS_OF_ROWS, (first, end))
        return Replace(
            document_id=document_id,
            generation=generation,
            content_hash=content_hash,
            chunks=tuple(replace(chunk, hidden=bool(hidden)) for chunk in chunks),
            vectors=_to_unit_rows(b"".join(blob for (blob,) in blobs), self._dimension),
        )

    def _write(self, batch: Batch) -> Written:
        with (
            writer_lock(self._folder, self._lock_timeout),
            closing(connect_writer(self._folder)) as connection,
        ):
            self._check()
            repair(self._folder, connection)
            written = write_batch(self._folder, connection, batch)
            clean_up(self._folder, connection)
            compact(self._folder, connection, self._dimension)
        return written

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            with translate_errors(self._folder):
                yield
        except (FulltextDamagedError, OSError) as error:
            raise NotConfiguredError(
                f"The index in {self._folder} cannot be written: {error}. Check that its disk has free space"
                " and that its files can be written, then start again."
            ) from error


def _to_unit_rows(halves: bytes, dimension: int) -> Vectors:
    """Decode half floats to rows of length 1; rounded to half floats again they are the same."""
    vectors: Vectors = np.frombuffer(halves, np.float16).reshape(-1, dimension).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / lengths
    return unit
