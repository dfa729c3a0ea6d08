"""What the pipeline may do with the local index: batches of changes, each one step to every reader.

A batch is written in four steps, so that a crash between any two leaves nothing half:

1. `store`: a transaction adds the new rows to the tables, seen by nobody;
2. `take_in`: the full-text index and the vector files get them too;
3. `flip`: a transaction points the documents at their new rows;
4. `settle`: what the flip made old is taken out.

The outbox says what is to be settled; the next writer repairs what a crash left before anything else.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path

from connectors.errors import AskTheOwner
from indexing.embedded import sql
from indexing.embedded.database import connect, connect_writer, named_errors
from indexing.embedded.flip import write_batch
from indexing.embedded.fulltext import Damaged
from indexing.embedded.locking import PATIENCE, sole_writer
from indexing.embedded.upkeep import compact, repair, settle
from indexing.index import IndexChange, IndexedDocument, Written
from indexing.preparing import Batch, BatchLimits, batches

BATCH = BatchLimits(changes=1_024, chunks=4_096)
"""Enough chunks to make the commits of a batch cheap, few enough to hold in memory."""
SURVEYED = 1_000
"""Documents read at a time, so that a long survey holds up no writer."""


class EmbeddedKeeper:
    """An `IndexKeeper` over a folder. Several may be used at once; they write one after the other."""

    def __init__(self, folder: Path, dimension: int, patience: float = PATIENCE) -> None:
        """To be had from `open_keeper`. `patience`: seconds to wait for another writer."""
        self._folder = folder
        self._dimension = dimension
        self._patience = patience

    def write(self, changes: Iterable[IndexChange]) -> Written:
        """See `IndexKeeper.write`. Changes are taken in batches; each is whole or not there at all.

        Raises:
            ValueError: see `IndexKeeper.write`; and chunks of one document that disagree on what is said of
                all of it, or a boost below zero. Batches before the one at fault are written.
            RetryLater: another writer did not end in time, or the disk is busy.
            AskTheOwner: the index cannot be written.
        """
        written = Written()
        for batch in batches(changes, self._dimension, BATCH):
            with self._named_errors():
                written = _sum(written, self._write(batch))
        return written

    def survey(self) -> Iterator[IndexedDocument]:
        """See `IndexKeeper.survey`. Documents written meanwhile may or may not be among them."""
        with closing(connect(self._folder)) as connection:
            last = ""
            while True:
                with self._named_errors():
                    found = connection.execute(sql.SURVEY, (last, SURVEYED)).fetchall()
                if not found:
                    return
                yield from (IndexedDocument(*row) for row in found)
                last = found[-1][0]

    def _write(self, batch: Batch) -> Written:
        with (
            sole_writer(self._folder, self._patience),
            closing(connect_writer(self._folder)) as connection,
        ):
            repair(self._folder, connection)
            written = write_batch(self._folder, connection, batch)
            settle(self._folder, connection)
            compact(self._folder, connection, self._dimension)
        return written

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            with named_errors(self._folder):
                yield
        except (Damaged, OSError) as error:
            raise AskTheOwner(
                f"The index in {self._folder} cannot be written: {error}. Check that its disk has room and"
                " that its files may be written, then start again."
            ) from error


def _sum(one: Written, other: Written) -> Written:
    return Written(
        **{
            field.name: getattr(one, field.name) + getattr(other, field.name)
            for field in fields(Written)
        }
    )
