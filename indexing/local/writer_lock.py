"""One writer at a time, over all threads and processes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

from connectors.errors import TemporarilyUnavailableError

PATIENCE = 120.0
"""Seconds to wait for another writer: longer than any one batch and than most rebuilds take."""


@contextmanager
def sole_writer(folder: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the right to write to the index in `folder`.

    The lock is that of an empty SQLite file: the operating system frees it when a process dies, on
    every system that SQLite runs on, and waiting is built in.

    Raises:
        TemporarilyUnavailableError: another writer did not finish within `patience` seconds.
    """
    with closing(
        sqlite3.connect(folder / "writer.lock", timeout=patience, isolation_level=None)
    ) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise TemporarilyUnavailableError(
                f"Another process has been writing to the index in {folder} for {patience:.0f} seconds."
                " Wait for it to end, or stop it, and try again.",
                timedelta(seconds=patience),
            ) from error
        yield
