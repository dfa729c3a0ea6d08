"""Open the local index of a folder; create it where there is none, and rebuild files that are missing."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from connectors.errors import DamagedDataError, NotConfiguredError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.versions import describe_embedder
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
from indexing.local.tantivy_index import FulltextDamagedError, FulltextIndex
from indexing.local.writer import LocalIndexWriter, allow_writes
from indexing.text.analysis import BY_LANGUAGE, Analysis, find_analysis


def open_index(folder: Path, identity: EmbedderIdentity) -> LocalIndex:
    """Open the index in `folder` for search.

    Raises:
        NotConfiguredError: the index was made with another embedder.
        DamagedDataError: it is damaged and cannot be rebuilt, or has another format.
        TemporarilyUnavailableError: it must be created or rebuilt while another process holds its lock.
    """
    return LocalIndex(folder, identity.dimension, create_index(folder, identity))


def open_writer(
    folder: Path, identity: EmbedderIdentity, check: Callable[[], None] = allow_writes
) -> LocalIndexWriter:
    """Open the index in `folder` for writing; `check` is that of `LocalIndexWriter`.

    Raises as `open_index` does.
    """
    analysis = create_index(folder, identity)
    return LocalIndexWriter(folder, identity.dimension, analysis, check=check)


def create_index(folder: Path, identity: EmbedderIdentity) -> Analysis:
    """Create the index where there is none, and rebuild what is missing of its files.

    Returns:
        the analysis of its words.

    Raises as `open_index` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with translate_errors(folder), closing(connect(folder)) as connection:
        if not _is_created(connection):
            _create(folder, identity)
        _check_version(folder, connection)
        _check_identity(folder, connection, identity)
        if not _is_complete(folder, connection, identity.dimension):
            _rebuild_missing(folder, identity.dimension)
        return find_analysis(read_meta(connection, "analysis"))


def has_current_words(folder: Path) -> bool:
    """Return whether the words of the index were made by the analysis of new ones.

    Raises DamagedDataError: the index cannot be read.
    """
    with translate_errors(folder), closing(connect(folder)) as connection:
        return read_meta(connection, "analysis") == BY_LANGUAGE.fingerprint


def _is_created(connection: Connection) -> bool:
    return bool(connection.execute(sql.HAS_TABLES).fetchone()[0])


def _create(folder: Path, identity: EmbedderIdentity) -> None:
    with writer_lock(folder), closing(connect_writer(folder)) as connection:
        if _is_created(connection):
            return
        tantivy_index.create(folder, 0, [])
        vector_file.remove(folder, 0)
        with transaction(connection):
            for statement in sql.TABLES:
                connection.execute(statement)
            write_meta(connection, "version", str(sql.SCHEMA_VERSION))
            write_meta(connection, "embedder", json.dumps(asdict(identity)))
            write_meta(connection, "analysis", BY_LANGUAGE.fingerprint)


def _check_version(folder: Path, connection: Connection) -> None:
    found = read_meta(connection, "version")
    if found != str(sql.SCHEMA_VERSION):
        raise DamagedDataError(
            f"The index in {folder} has format {found}; this version of Quarry reads format"
            f" {sql.SCHEMA_VERSION}. Rebuild it: quarry reindex --rebuild. Or remove the folder and"
            " sync again."
        )


def _check_identity(folder: Path, connection: Connection, identity: EmbedderIdentity) -> None:
    found = EmbedderIdentity(**json.loads(read_meta(connection, "embedder") or "{}"))
    if found != identity:
        raise NotConfiguredError(
            f"The index in {folder} was made with {describe_embedder(found)}; configured is"
            f" {describe_embedder(identity)}. Their vectors cannot be compared. Configure the former model"
            " again, or remove the folder and sync again."
        )


def _is_complete(folder: Path, connection: Connection, dimension: int) -> bool:
    state = read_state(connection)
    return _vectors_are_complete(folder, state, dimension) and _fulltext_is_complete(folder, state)


def _vectors_are_complete(folder: Path, state: State, dimension: int) -> bool:
    return vector_file.are_complete(folder, state.vector_epoch, state.slots, dimension)


def _fulltext_is_complete(folder: Path, state: State) -> bool:
    try:
        return FulltextIndex(folder, state.fulltext_epoch).searcher().num_docs >= state.chunks
    except FulltextDamagedError:
        return False


def _rebuild_missing(folder: Path, dimension: int) -> None:
    """Rebuild what is missing; check under the lock, as another process may have done so, or be writing."""
    with writer_lock(folder), closing(connect_writer(folder)) as connection:
        state = read_state(connection)
        if not _vectors_are_complete(folder, state, dimension):
            maintenance.rebuild_vectors(folder, connection, dimension)
        if not _fulltext_is_complete(folder, state):
            maintenance.rebuild_fulltext(folder, connection)
