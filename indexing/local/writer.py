"""What the pipeline may do with the local index: batches of changes, each one step to every reader.

A batch is written in four steps, so that a crash between any two leaves nothing half:

1. `store`: a transaction adds the new rows to the tables, seen by nobody;
2. `take_in`: the full-text index and the vector files get them too;
3. `flip`: a transaction points the documents at their new rows;
4. `settle`: what the flip made old is taken out.

The outbox says what is to be settled; the next writer repairs what a crash left before anything else.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from connectors.errors import ActionRequiredError
from indexing.embedding.embedder import Vectors
from indexing.index.protocols import IndexChange, IndexedDocument, Replace, Written
from indexing.index.validation import Batch, BatchLimits, prepare_batches
from indexing.local import row_mapping, sql
from indexing.local.commit import write_batch
from indexing.local.database import (
    LOCK_TIMEOUT,
    Connection,
    connect,
    connect_writer,
    read_transaction,
    translate_errors,
    writer_lock,
)
from indexing.local.maintenance import compact, repair, settle
from indexing.local.tantivy_index import Damaged

BATCH = BatchLimits(changes=1_024, chunks=4_096)
"""Enough chunks to make the commits of a batch cheap, few enough to hold in memory."""
SURVEYED = 1_000
"""Documents read at a time, so that a long scan holds up no writer."""


def always() -> None:
    """Nothing stands in the way of a write."""


class LocalIndexWriter:
    """An `IndexWriter` over a folder. Several may be used at once; they write one after the other."""

    def __init__(
        self,
        folder: Path,
        dimension: int,
        patience: float = LOCK_TIMEOUT,
        check: Callable[[], None] = always,
    ) -> None:
        """To be had from `open_writer`.

        Args:
            patience: seconds to wait for another writer.
            check: raises if the folder may not be written any more; asked while no other writer can change that.
        """
        self._folder = folder
        self._dimension = dimension
        self._patience = patience
        self._check = check

    def write(self, changes: Iterable[IndexChange]) -> Written:
        """See `IndexWriter.write`. Changes are taken in batches; each is whole or not there at all.

        Raises:
            ValueError: see `IndexWriter.write`; and chunks of one document that disagree on what is said of
                all of it, or a boost below zero. Batches before the one at fault are written.
            TemporarilyUnavailableError: another writer did not end in time, or the disk is busy.
            ActionRequiredError: the index cannot be written.
        """
        written = Written()
        for batch in prepare_batches(changes, self._dimension, BATCH):
            with self._named_errors():
                written += self._write(batch)
        return written

    def scan(self) -> Iterator[IndexedDocument]:
        """See `IndexWriter.scan`. Documents written meanwhile may or may not be among them."""
        with closing(connect(self._folder)) as connection:
            last = ""
            while True:
                with self._named_errors():
                    found = connection.execute(sql.SCAN, (last, SURVEYED)).fetchall()
                if not found:
                    return
                for each, generation, chunks, digest, tokens in found:
                    yield IndexedDocument(
                        each, generation, chunks, digest, row_mapping.access_of(tokens)
                    )
                last = found[-1][0]

    def export(self, after: str = "") -> Iterator[Replace]:
        """See `IndexWriter.export`. Each document is as one moment saw it; one is held at a time."""
        with closing(connect(self._folder)) as connection:
            while True:
                with self._named_errors(), read_transaction(connection):
                    found = self._next(connection, after)
                if found is None:
                    return
                yield found
                after = found.document_id

    def _next(self, connection: Connection, after: str) -> Replace | None:
        found = connection.execute(sql.EXPORTED, (after,)).fetchone()
        if found is None:
            return None
        ordinal, document_id, generation, content_hash, hidden, first, end = found
        chunks = row_mapping.whole(connection, ordinal)
        blobs = connection.execute(sql.VECTORS_OF_ROWS, (first, end))
        return Replace(
            document_id=document_id,
            generation=generation,
            content_hash=content_hash,
            chunks=tuple(replace(chunk, hidden=bool(hidden)) for chunk in chunks),
            vectors=_unit(b"".join(blob for (blob,) in blobs), self._dimension),
        )

    def _write(self, batch: Batch) -> Written:
        with (
            writer_lock(self._folder, self._patience),
            closing(connect_writer(self._folder)) as connection,
        ):
            self._check()
            repair(self._folder, connection)
            written = write_batch(self._folder, connection, batch)
            settle(self._folder, connection)
            compact(self._folder, connection, self._dimension)
        return written

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            with translate_errors(self._folder):
                yield
        except (Damaged, OSError) as error:
            raise ActionRequiredError(
                f"The index in {self._folder} cannot be written: {error}. Check that its disk has room and"
                " that its files may be written, then start again."
            ) from error


def _unit(halves: bytes, dimension: int) -> Vectors:
    """Half floats as rows of length 1, which rounded to half floats again are what they were."""
    vectors: Vectors = np.frombuffer(halves, np.float16).reshape(-1, dimension).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / lengths
    return unit
