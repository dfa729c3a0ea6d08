"""What a crash leaves over, and what is done about it."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Amend, Delete, IndexChange, Replace
from indexing.index.validation import prepare_batches
from indexing.local import LocalIndexWriter, open_index, open_writer, vector_file
from indexing.local.database import connect_writer, read_state, writer_lock
from indexing.local.tantivy_index import FulltextIndex
from indexing.local.write_plan import plan_batch
from indexing.local.writer import BATCH, commit, stage_files, stage_rows
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, IDENTITY, document, query, vector
from tests.support.index_engines import PUBLIC, soon


@pytest.fixture
def writer(tmp_path: Path) -> LocalIndexWriter:
    return open_writer(tmp_path, IDENTITY)


def found(folder: Path, text: str) -> list[str]:
    with open_index(folder, IDENTITY) as index:
        asked = [query(text), query("", vector=vector(text), alpha=1.0)]
        by_words, by_vector = index.find(asked, PUBLIC, soon()).rankings
    assert {hit.chunk.key for hit in by_words} <= {hit.chunk.key for hit in by_vector}
    return [hit.chunk.document_id for hit in by_words]


def tables(folder: Path) -> dict[str, int]:
    """Rows of each table that may have something left over."""
    with closing(connect_writer(folder)) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("documents", "chunks", "words", "vectors", "outbox")
        }


def in_fulltext(folder: Path) -> int:
    with closing(connect_writer(folder)) as connection:
        return FulltextIndex(folder, read_state(connection).fulltext_epoch).searcher().num_docs


def crash(folder: Path, change: IndexChange, after: str) -> None:
    """Write `change`, and stop after one of the steps as a killed process does."""
    (batch,) = prepare_batches([change], DIMENSION, BATCH, BY_LANGUAGE)
    with closing(connect_writer(folder)) as connection:
        plan = plan_batch(connection, batch)
        staged = stage_rows(connection, plan)
        if after in ("files staged", "committed"):
            stage_files(folder, connection, staged)
        if after == "committed":
            commit(connection, plan, staged)


STEPS = ["rows staged", "files staged", "committed"]


@pytest.mark.parametrize("step", STEPS)
def test_a_replacement_that_stops_anywhere_is_whole_or_not_there(
    tmp_path: Path, writer: LocalIndexWriter, step: str
) -> None:
    writer.write([document("a", "former", "former too"), document("b", "else")])
    crash(tmp_path, document("a", "latter", generation=2), step)
    expected = (["a"], []) if step == "committed" else ([], ["a", "a"])
    assert (found(tmp_path, "latter"), found(tmp_path, "former")) == expected
    writer.write([document("c", "next")])
    assert (found(tmp_path, "latter"), found(tmp_path, "former")) == expected
    assert found(tmp_path, "next") == ["c"]
    chunks = 3 if step == "committed" else 4
    assert tables(tmp_path) == {
        "documents": 3, "chunks": chunks, "words": chunks, "vectors": chunks, "outbox": 0
    }  # fmt: skip
    assert in_fulltext(tmp_path) == chunks


@pytest.mark.parametrize("step", STEPS)
def test_readers_do_not_wait_for_a_writer_that_stopped(
    tmp_path: Path, writer: LocalIndexWriter, step: str
) -> None:
    writer.write([document("a", "former")])
    with open_index(tmp_path, IDENTITY) as index:
        (before,) = index.find([query("former")], PUBLIC, soon()).rankings
        crash(tmp_path, document("b", "latter"), step)
        (after,) = index.find([query("former")], PUBLIC, Deadline.after(1.0)).rankings
    assert [hit.chunk for hit in after] == [hit.chunk for hit in before]


def test_a_deletion_that_stops_is_cleaned_up_by_the_next_write(
    tmp_path: Path, writer: LocalIndexWriter
) -> None:
    writer.write([document("a", "text"), document("b", "text")])
    crash(tmp_path, Delete("a"), "committed")
    assert found(tmp_path, "text") == ["b"]
    assert in_fulltext(tmp_path) == 2
    writer.write([Delete("none")])
    assert in_fulltext(tmp_path) == 1
    assert tables(tmp_path)["chunks"] == 1


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("before", "after"), [(EVERYBODY, NOBODY), (NOBODY, EVERYBODY)])
def test_an_amendment_that_stops_holds_for_words_and_vectors_alike(
    tmp_path: Path, writer: LocalIndexWriter, step: str, before: Access, after: Access
) -> None:
    writer.write([document("a", "text", access=before)])
    crash(tmp_path, Amend(document_id="a", access=after), step)
    holds = after if step == "committed" else before
    expected = ["a"] if holds == EVERYBODY else []
    for _ in range(2):
        with open_index(tmp_path, IDENTITY) as index:
            asked = [query("text"), query("", vector=vector("text"), alpha=1.0)]
            rankings = index.find(asked, PUBLIC, soon()).rankings
        assert [[hit.chunk.document_id for hit in found] for found in rankings] == [expected] * 2
        writer.write([Delete("none")])
    assert in_fulltext(tmp_path) == 1


def test_files_of_a_commit_that_never_came_to_be_are_not_in_the_way(
    tmp_path: Path, writer: LocalIndexWriter
) -> None:
    writer.write([document("a", "text"), document("b", "text")])
    crash(tmp_path, Delete("a"), "committed")
    # What the commit of the deletion would write is learned from one that comes to its end.
    shutil.copytree(tmp_path, tmp_path / "copy")
    LocalIndexWriter(tmp_path / "copy", DIMENSION, BY_LANGUAGE).write([Delete("none")])
    (written,) = (tmp_path / "copy" / "fts-0").glob("*.del")
    (tmp_path / "fts-0" / written.name).write_bytes(b"half")
    managed = tmp_path / "fts-0" / ".managed.json"
    managed.write_text(json.dumps([*json.loads(managed.read_text()), written.name]))
    writer.write([Delete("none")])
    assert (tmp_path / "fts-0").exists(), "it should not have been built again"
    assert found(tmp_path, "text") == ["b"]
    assert in_fulltext(tmp_path) == 1


def test_a_full_text_that_cannot_be_cleaned_up_is_rebuilt(
    tmp_path: Path, writer: LocalIndexWriter
) -> None:
    writer.write([document("a", "text"), document("b", "text")])
    crash(tmp_path, Delete("a"), "committed")
    for file in (tmp_path / "fts-0").glob("*.term"):
        file.write_bytes(b"")
    writer.write([document("c", "text")])
    assert found(tmp_path, "text") == ["b", "c"]
    assert in_fulltext(tmp_path) == 2
    assert not (tmp_path / "fts-0").exists()


def test_an_amended_document_stands_once_in_the_full_text(
    tmp_path: Path, writer: LocalIndexWriter
) -> None:
    writer.write([document("a", "text", "text")])
    for access in (NOBODY, EVERYBODY, NOBODY, EVERYBODY):
        writer.write([Amend(document_id="a", access=access)])
    assert in_fulltext(tmp_path) == 2
    writer.write([Amend(document_id="a", boost=3.0)])
    assert found(tmp_path, "text") == ["a", "a"]


def test_a_text_that_is_not_unicode_is_refused_whole(
    tmp_path: Path, writer: LocalIndexWriter
) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        writer.write([document("a", "fine", "half a character: \ud83d")])
    writer.write([document("b", "fine")])
    assert found(tmp_path, "fine") == ["b"]
    assert tables(tmp_path)["chunks"] == 1


def test_what_a_crash_appended_to_the_vectors_is_written_over(
    tmp_path: Path, writer: LocalIndexWriter
) -> None:
    crash(tmp_path, document("a", "lost"), "files staged")
    writer.write([document("b", "kept")])
    halves = vector_file.map_files(tmp_path, 0, DIMENSION).halves
    assert np.array_equal(halves[0], vector("kept").astype(np.float16))


def test_dead_vectors_are_cleared_away(tmp_path: Path, writer: LocalIndexWriter) -> None:
    def corpus(generation: int) -> Iterator[Replace]:
        for n in range(60):
            yield document(f"{n}", *(f"w{n}x{p}" for p in range(50)), generation=generation)

    with open_index(tmp_path, IDENTITY) as index:
        writer.write(corpus(1))
        asked = query("w7x7", vector=vector("w7x7"), alpha=0.5, size=1)
        for generation in (2, 3):
            writer.write(list(corpus(generation))[:40])
            ((hit,),) = index.find([asked], PUBLIC, soon()).rankings
            assert hit.chunk.key == ("7", 7)
            assert hit.evidence.cosine == pytest.approx(1.0, abs=1e-3)
    with closing(connect_writer(tmp_path)) as connection:
        state = read_state(connection)
    assert state.chunks == 3_000
    assert state.slots == 3_000
    epochs = {path.stem for path in tmp_path.glob("vectors-*")}
    assert epochs == {f"vectors-{state.vector_epoch}"}
    assert state.vector_epoch > 0


def test_a_writer_waits_its_time_and_says_so(tmp_path: Path) -> None:
    open_writer(tmp_path, IDENTITY)
    impatient = LocalIndexWriter(tmp_path, DIMENSION, BY_LANGUAGE, lock_timeout=0.05)
    with writer_lock(tmp_path), pytest.raises(TemporarilyUnavailableError, match="Another process"):
        impatient.write([document("a", "text")])
    assert impatient.write([document("a", "text")]).replaced == 1


@pytest.mark.soak("slow")
def test_a_batch_holds_a_document_once_and_so_many_chunks() -> None:
    changes: list[IndexChange] = [
        document("a", "1"),
        document("b", "1"),
        Amend(document_id="a", boost=2.0),
        Delete("b"),
        Delete("a"),
        document("large", *["x"] * (BATCH.chunks + 1)),
        document("c", "1"),
    ]
    names = [
        [item.document_id for item in batch]
        for batch in prepare_batches(changes, DIMENSION, BATCH, BY_LANGUAGE)
    ]
    assert names == [["a", "b"], ["a", "b"], ["a"], ["large"], ["c"]]


@pytest.mark.parametrize("boost", [-0.1, float("nan"), float("inf")])
def test_a_boost_is_a_number_from_zero_on(writer: LocalIndexWriter, boost: float) -> None:
    with pytest.raises(ValueError, match="boost"):
        writer.write([document("a", "text", boost=boost)])
    with pytest.raises(ValueError, match="boost"):
        writer.write([Amend(document_id="a", boost=boost)])


def test_chunks_that_disagree_about_their_document_are_refused(writer: LocalIndexWriter) -> None:
    one, two = document("a", "1"), document("a", "1", "2", title="Another")
    mixed = Replace(
        document_id="a",
        generation=1,
        content_hash="h",
        chunks=(one.chunks[0], two.chunks[1]),
        vectors=two.vectors,
    )
    with pytest.raises(ValueError, match="disagree"):
        writer.write([mixed])


def test_a_failing_source_of_changes_keeps_its_error(writer: LocalIndexWriter) -> None:
    def broken() -> Iterator[IndexChange]:
        yield document("a", "text")
        raise FileNotFoundError("of the source")

    with pytest.raises(FileNotFoundError, match="of the source"):
        writer.write(broken())


def test_driver_errors_do_not_come_through(tmp_path: Path, writer: LocalIndexWriter) -> None:
    writer.write([document("a", "text")])
    with closing(sqlite3.connect(tmp_path / "index.db")) as connection:
        connection.execute("DROP TABLE words")
    with open_index(tmp_path, IDENTITY) as index, pytest.raises(Exception, match="cannot be used"):
        index.find([query("text")], PUBLIC, soon())
