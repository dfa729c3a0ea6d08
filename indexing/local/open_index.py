"""Open the local index of a folder: made where there is none, mended where a file is missing."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from connectors.errors import ActionRequiredError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.local import maintenance, sql, tantivy_index, vector_file
from indexing.local.database import (
    Connection,
    State,
    connect,
    connect_writer,
    read_meta,
    read_state,
    transaction,
    translate_errors,
    write_meta,
    writer_lock,
)
from indexing.local.searcher import LocalIndex
from indexing.local.tantivy_index import Damaged, Fulltext
from indexing.local.writer import LocalIndexWriter, always
from indexing.text import tokenizer


def open_index(folder: Path, identity: EmbedderIdentity) -> LocalIndex:
    """The index in `folder`, for askers.

    Raises:
        ActionRequiredError: the index was made with another embedder, or is damaged beyond mending.
        TemporarilyUnavailableError: it has to be made or mended, and another process kept it locked.
    """
    _prepare(folder, identity)
    return LocalIndex(folder, identity.dimension)


def open_writer(
    folder: Path, identity: EmbedderIdentity, check: Callable[[], None] = always
) -> LocalIndexWriter:
    """The index in `folder`, for the pipeline; `check` is that of `LocalIndexWriter`.

    Raises as `open_index` does.
    """
    _prepare(folder, identity)
    return LocalIndexWriter(folder, identity.dimension, check=check)


def _prepare(folder: Path, identity: EmbedderIdentity) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with translate_errors(folder), closing(connect(folder)) as connection:
        if not _is_made(connection):
            _make(folder, identity)
        _check_version(folder, connection)
        _check_identity(folder, connection, identity)
        if not _is_whole(folder, connection, identity.dimension):
            _mend(folder, identity.dimension)


def _is_made(connection: Connection) -> bool:
    return bool(connection.execute(sql.HAS_TABLES).fetchone()[0])


def _make(folder: Path, identity: EmbedderIdentity) -> None:
    with writer_lock(folder), closing(connect_writer(folder)) as connection:
        if _is_made(connection):
            return
        tantivy_index.create(folder, 0, [])
        vector_file.remove(folder, 0)
        with transaction(connection):
            for statement in sql.TABLES:
                connection.execute(statement)
            write_meta(connection, "version", str(sql.SCHEMA_VERSION))
            write_meta(connection, "embedder", json.dumps(asdict(identity)))
            write_meta(connection, "analysis", tokenizer.fingerprint())


def _check_version(folder: Path, connection: Connection) -> None:
    found = read_meta(connection, "version")
    if found != str(sql.SCHEMA_VERSION):
        raise ActionRequiredError(
            f"The index in {folder} is of format {found}; this version of Quarry reads format"
            f" {sql.SCHEMA_VERSION}. Build it anew: quarry reindex --rebuild. Or remove the folder and"
            " sync again."
        )


def _check_identity(folder: Path, connection: Connection, identity: EmbedderIdentity) -> None:
    found = EmbedderIdentity(**json.loads(read_meta(connection, "embedder") or "{}"))
    if found != identity:
        raise ActionRequiredError(
            f"The index in {folder} was made with {_told(found)}; set is {_told(identity)}. Their vectors"
            " do not compare. Set the former model again, or remove the folder and sync again."
        )


def _told(identity: EmbedderIdentity) -> str:
    return (
        f"the model {identity.model} ({identity.version}, {identity.precision},"
        f" {identity.dimension} dimensions)"
    )


def _is_whole(folder: Path, connection: Connection, dimension: int) -> bool:
    state = read_state(connection)
    return (
        _vectors_are_whole(folder, state, dimension)
        and _fulltext_is_whole(folder, state)
        and read_meta(connection, "analysis") == tokenizer.fingerprint()
    )


def _vectors_are_whole(folder: Path, state: State, dimension: int) -> bool:
    return vector_file.are_whole(folder, state.vector_epoch, state.slots, dimension)


def _fulltext_is_whole(folder: Path, state: State) -> bool:
    try:
        return Fulltext(folder, state.fulltext_epoch).searcher().num_docs >= state.chunks
    except Damaged:
        return False


def _mend(folder: Path, dimension: int) -> None:
    """Looks again under the lock: another process may have mended it, or be in the middle of a write."""
    with writer_lock(folder), closing(connect_writer(folder)) as connection:
        state = read_state(connection)
        if not _vectors_are_whole(folder, state, dimension):
            maintenance.rebuild_vectors(folder, connection, dimension)
        if read_meta(connection, "analysis") != tokenizer.fingerprint():
            maintenance.analyse_again(folder, connection)
        elif not _fulltext_is_whole(folder, state):
            maintenance.rebuild_fulltext(folder, connection)
