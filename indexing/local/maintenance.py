"""Keep the full-text index and the vector files consistent with the tables."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from indexing.local import sql, tantivy_index, vector_file
from indexing.local.database import (
    Connection,
    read_state,
    transaction,
    write_state,
)
from indexing.local.tantivy_index import (
    FulltextDamagedError,
    FulltextIndex,
    read_all_entries,
    read_entries,
)

OBSOLETE_SHARE = 0.2
"""Of the slots; above it the vector files are rewritten."""
OBSOLETE_COUNT = 1_000


def repair(folder: Path, connection: Connection) -> None:
    """Clean up after a writer that crashed; every writer calls this first."""
    if not connection.execute(sql.READ_OUTBOX).fetchone():
        return
    try:
        FulltextIndex(folder, read_state(connection).fulltext_epoch).collect_garbage()
        clean_up(folder, connection)
    except FulltextDamagedError:
        rebuild_fulltext(folder, connection)
        clean_up(folder, connection)


def clean_up(folder: Path, connection: Connection) -> None:
    """Remove versions that are obsolete or were never committed, and re-index amended ones.

    May be repeated at any time: the outbox is cleared only when all of it is done.
    """
    outbox = connection.execute(sql.READ_OUTBOX).fetchall()
    if not outbox:
        return
    current = [version for version, _, is_current in outbox if is_current]
    obsolete = [
        (version, version + count) for version, count, is_current in outbox if not is_current
    ]
    entries = chain.from_iterable(read_entries(connection, version) for version in current)
    epoch = read_state(connection).fulltext_epoch
    FulltextIndex(folder, epoch).write([version for version, _, _ in outbox], entries)
    with transaction(connection):
        for statement in (sql.DROP_CHUNKS, sql.DROP_WORDS, sql.DROP_VECTORS):
            connection.executemany(statement, obsolete)
        connection.executemany(sql.CLEAR_OUTBOX, ((version,) for version, _, _ in outbox))
        write_state(connection, read_state(connection))


def compact(folder: Path, connection: Connection, dimension: int) -> None:
    """Rewrite the vector files if too many of their slots are obsolete."""
    state = read_state(connection)
    obsolete = state.slots - state.chunks
    if obsolete > max(OBSOLETE_COUNT, OBSOLETE_SHARE * state.slots):
        rebuild_vectors(folder, connection, dimension)


def rebuild_vectors(folder: Path, connection: Connection, dimension: int) -> None:
    """Build a new epoch of the vector files from the tables; readers change over when it is complete."""
    state = read_state(connection)
    epoch = state.vector_epoch + 1
    blocks = vector_file.iterate_blocks(connection.execute(sql.ALL_VECTORS), dimension)
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
    """Build a new epoch of the full-text index from the tables."""
    state = read_state(connection)
    epoch = state.fulltext_epoch + 1
    tantivy_index.create(folder, epoch, read_all_entries(connection))
    with transaction(connection):
        write_state(connection, replace(state, fulltext_epoch=epoch))
    tantivy_index.remove(folder, state.fulltext_epoch)
