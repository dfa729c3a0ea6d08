"""What keeps the full-text index and the vector files in step with the tables."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from indexing.local import sql, tantivy_index, vector_file
from indexing.local.database import (
    Connection,
    read_state,
    transaction,
    write_meta,
    write_state,
)
from indexing.local.tantivy_documents import all_entries, entries_of
from indexing.local.tantivy_index import Damaged, Fulltext
from indexing.text import tokenizer

DEAD_SHARE = 0.2
"""Of the slots; beyond it the vector files are written anew."""
DEAD_COUNT = 1_000

ANALYSED = 1_000
"""Texts analysed in one transaction."""


def repair(folder: Path, connection: Connection) -> None:
    """Settle what a writer left that did not come to its end; for the next writer, before all else."""
    if not connection.execute(sql.READ_OUTBOX).fetchone():
        return
    try:
        Fulltext(folder, read_state(connection).fulltext_epoch).collect_garbage()
        settle(folder, connection)
    except Damaged:
        rebuild_fulltext(folder, connection)
        settle(folder, connection)


def settle(folder: Path, connection: Connection) -> None:
    """Take out versions that are old or were never flipped, put in amended ones anew.

    May be repeated at any time: the outbox is cleared when all of it is done.
    """
    outbox = connection.execute(sql.READ_OUTBOX).fetchall()
    if not outbox:
        return
    live = [version for version, _, is_live in outbox if is_live]
    dead = [(version, version + count) for version, count, is_live in outbox if not is_live]
    entries = chain.from_iterable(entries_of(connection, version) for version in live)
    epoch = read_state(connection).fulltext_epoch
    Fulltext(folder, epoch).write([version for version, _, _ in outbox], entries)
    with transaction(connection):
        for statement in (sql.DROP_CHUNKS, sql.DROP_WORDS, sql.DROP_VECTORS):
            connection.executemany(statement, dead)
        connection.executemany(sql.CLEAR_OUTBOX, ((version,) for version, _, _ in outbox))
        write_state(connection, read_state(connection))


def compact(folder: Path, connection: Connection, dimension: int) -> None:
    """Write the vector files anew where too many of their slots are dead."""
    state = read_state(connection)
    dead = state.slots - state.chunks
    if dead > max(DEAD_COUNT, DEAD_SHARE * state.slots):
        rebuild_vectors(folder, connection, dimension)


def rebuild_vectors(folder: Path, connection: Connection, dimension: int) -> None:
    """A new epoch of the vector files, from the tables; readers move over when it is whole."""
    state = read_state(connection)
    epoch = state.vector_epoch + 1
    blocks = vector_file.blocks_of(connection.execute(sql.ALL_VECTORS), dimension)
    slots = vector_file.build(folder, epoch, blocks)
    with transaction(connection):
        connection.executemany(sql.MOVE_SLOTS, list(_moves(connection)))
        write_state(connection, replace(state, slots=slots, vector_epoch=epoch))
    vector_file.remove(folder, state.vector_epoch)


def _moves(connection: Connection) -> Iterator[tuple[int, int]]:
    slot = 0
    for ordinal, count in connection.execute(sql.VERSIONS):
        yield slot, ordinal
        slot += count


def rebuild_fulltext(folder: Path, connection: Connection) -> None:
    """A new epoch of the full-text index, from the tables."""
    state = read_state(connection)
    epoch = state.fulltext_epoch + 1
    tantivy_index.create(folder, epoch, all_entries(connection))
    with transaction(connection):
        write_state(connection, replace(state, fulltext_epoch=epoch))
    tantivy_index.remove(folder, state.fulltext_epoch)


def analyse_again(folder: Path, connection: Connection) -> None:
    """Make the words of all texts anew, where `analysis` makes others than it did."""
    last = -1
    while texts := connection.execute(sql.TEXTS_TO_ANALYSE, (last, ANALYSED)).fetchall():
        with transaction(connection):
            connection.executemany(
                sql.REPLACE_WORDS, ((" ".join(tokenizer.words(text)), row) for row, text in texts)
            )
        last = texts[-1][0]
    rebuild_fulltext(folder, connection)
    with transaction(connection):
        write_meta(connection, "analysis", tokenizer.fingerprint())
