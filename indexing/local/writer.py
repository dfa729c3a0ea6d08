"""The writer of the local index. How a batch is written, and why so, is in `write_transaction`."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from connectors.errors import NotConfiguredError
from indexing.embedding.embedder import Vectors
from indexing.index.protocols import IndexChange, IndexedDocument, Replace, Written
from indexing.index.validation import Batch, BatchLimits, prepare_batches
from indexing.local import row_mapping, sql
from indexing.local.database import (
    LOCK_TIMEOUT,
    Connection,
    connect,
    connect_writer,
    read_transaction,
    translate_errors,
    writer_lock,
)
from indexing.local.maintenance import clean_up, compact, repair
from indexing.local.tantivy_index import FulltextDamagedError
from indexing.local.write_transaction import write_batch

BATCH = BatchLimits(changes=1_024, chunks=4_096)
"""Enough chunks to make the commits of a batch cheap, few enough to keep in memory."""
SCAN_PAGE = 1_000
"""Documents read at a time, so that a long scan blocks no writer."""


def allow_writes() -> None:
    """The check of a folder that may always be written."""


class LocalIndexWriter:
    """An `IndexWriter` over a folder. Several may be used at once; they write one after the other."""

    def __init__(
        self,
        folder: Path,
        dimension: int,
        lock_timeout: float = LOCK_TIMEOUT,
        check: Callable[[], None] = allow_writes,
    ) -> None:
        """Use `open_writer`.

        Args:
            lock_timeout: seconds to wait for another writer.
            check: raises if the folder may no longer be written; called while the writer lock is held.
        """
        self._folder = folder
        self._dimension = dimension
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
        for batch in prepare_batches(changes, self._dimension, BATCH):
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
                    yield IndexedDocument(
                        each, generation, chunks, digest, row_mapping.parse_access(tokens)
                    )
                last = found[-1][0]

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
        chunks = row_mapping.read_document_chunks(connection, ordinal)
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
