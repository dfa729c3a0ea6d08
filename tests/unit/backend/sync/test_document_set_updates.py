"""Telling documents their sets: exactly those concerned, whatever happens meanwhile."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.store.database import open_database
from backend.store.documents import document_set_jobs, document_sets
from backend.store.documents.document_set_rules import SetRule
from backend.sync.document_set_updates import DocumentSetUpdater
from backend.sync.run_lease import StoppedError
from connectors.access import Access
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Amend, IndexChange, Replace, Written
from indexing.local import open_writer
from tests.support.databases import sqlite_in
from tests.support.document_sets import (
    EMBEDDER,
    apply_all,
    define,
    folder,
    make_chunk,
    members,
    single,
    source,
    tag,
    write_documents,
)
from tests.support.memory_index_writer import MemoryIndexWriter, WatchedIndexWriter
from tests.support.soak import scaled
from tests.support.store import Store, store_at, store_with


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


@pytest.fixture
def writer() -> MemoryIndexWriter:
    return MemoryIndexWriter(EMBEDDER.dimension)


def _amended(writer: MemoryIndexWriter) -> list[str]:
    return [each.document_id for each in writer.log if isinstance(each, Amend)]


def test_documents_are_told_and_only_those_that_change(
    store: Store, writer: MemoryIndexWriter
) -> None:
    chunks = [make_chunk(f"desk:{n}") for n in range(3)] + [make_chunk("web:x/1", "k=v")]
    write_documents(store.database, writer, chunks)
    first = define(store.database, "a", source("desk"))
    assert apply_all(store.database, writer) == 1
    assert members(writer, first) == {"desk:0", "desk:1", "desk:2"}
    progress = document_sets.find(store.database, "a").progress
    assert (progress.is_applied, progress.done, progress.total) == (True, 3, 3)
    assert progress.documents == 3
    writer.log.clear()
    define(store.database, "a", source("desk"), single("desk:1"), tag("k=v"))
    apply_all(store.database, writer)
    assert _amended(writer) == ["web:x/1"]
    writer.log.clear()
    second = define(store.database, "b", folder("web", "x"))
    define(store.database, "a", single("desk:1"))
    apply_all(store.database, writer)
    assert sorted(_amended(writer)) == ["desk:0", "desk:2", "web:x/1"]
    assert members(writer, first) == {"desk:1"}
    assert members(writer, second) == {"web:x/1"}
    document_sets.remove(store.database, first.id)
    apply_all(store.database, writer)
    assert members(writer, first) == set()
    assert members(writer, second) == {"web:x/1"}
    assert not document_set_jobs.is_due(store.database)


def test_rights_and_vectors_stay_as_they_are(store: Store, writer: MemoryIndexWriter) -> None:
    access = Access.to(["group:hr"])
    write_documents(store.database, writer, [make_chunk("desk:1", access=access)])
    define(store.database, "a", source("desk"))
    apply_all(store.database, writer)
    (held,) = writer.held.values()
    assert (held.chunks[0].access, held.generation) == (access, 1)
    assert not any(isinstance(each, Replace) for each in writer.log[1:])


def test_a_document_is_in_its_sets_with_the_write_that_brings_it(
    store: Store, writer: MemoryIndexWriter
) -> None:
    a = define(store.database, "a", source("desk"))
    b = define(store.database, "b", tag("k=v"))
    apply_all(store.database, writer)
    write_documents(store.database, writer, [make_chunk("desk:1", "k=v"), make_chunk("web:2")])
    assert members(writer, a) == members(writer, b) == {"desk:1"}
    write_documents(store.database, writer, [make_chunk("desk:1")], generation=2)
    assert (members(writer, a), members(writer, b)) == ({"desk:1"}, set())
    assert _amended(writer) == []


@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after it"])
def test_a_set_that_changes_while_a_document_is_written_has_it(
    store: Store, *, before: bool
) -> None:
    """The job finds nothing, as the document is not in the index yet, or its own label is overwritten."""
    writer, calls = WatchedIndexWriter(EMBEDDER.dimension), iter([True, False])

    def change_set() -> None:
        if next(calls, None) is before:
            writer.watch = lambda: None
            define(store.database, "a", source("desk"))
            apply_all(store.database, writer)

    writer.watch = change_set
    write_documents(store.database, writer, [make_chunk("desk:1")])
    assert members(writer, document_sets.find(store.database, "a")) == {"desk:1"}


def test_a_set_that_changes_while_documents_are_told_is_told_as_well(store: Store) -> None:
    writer = WatchedIndexWriter(EMBEDDER.dimension)
    write_documents(store.database, writer, [make_chunk("desk:1"), make_chunk("desk:2")])

    def change_set() -> None:
        writer.watch = lambda: None
        define(store.database, "a", single("desk:2"))

    found = define(store.database, "a", source("desk"))
    writer.watch = change_set
    apply_all(store.database, writer)
    assert members(writer, found) == {"desk:2"}


def test_two_sets_that_are_told_at_once_both_have_the_document(store: Store) -> None:
    """The one job writes what it read before the other set was changed, after that was told."""
    writer = WatchedIndexWriter(EMBEDDER.dimension)
    write_documents(store.database, writer, [make_chunk("desk:1"), make_chunk("desk:2")])

    def change_other_set() -> None:
        writer.watch = lambda: None
        define(store.database, "b", single("desk:2"))
        assert apply_all(store.database, writer) == 1

    found = define(store.database, "a", source("desk"))
    writer.watch = change_other_set
    apply_all(store.database, writer)
    assert members(writer, found) == {"desk:1", "desk:2"}
    assert members(writer, document_sets.find(store.database, "b")) == {"desk:2"}


class _FailingWriter(MemoryIndexWriter):
    fails = True

    def write(self, changes: Iterable[IndexChange]) -> Written:
        batch = list(changes)
        if self.fails and any(isinstance(each, Amend) for each in batch):
            raise TemporarilyUnavailableError("The index is away.", timedelta(seconds=1))
        return super().write(batch)


def test_a_job_that_fails_says_why_and_goes_on_later(store: Store) -> None:
    writer = _FailingWriter(EMBEDDER.dimension)
    write_documents(store.database, writer, [make_chunk("desk:1")])
    found = define(store.database, "a", source("desk"))
    with pytest.raises(TemporarilyUnavailableError):
        apply_all(store.database, writer)
    assert document_sets.find(store.database, "a").progress.trouble == "The index is away."
    assert apply_all(store.database, writer) == 0
    writer.fails = False
    define(store.database, "a", source("desk"), tag("k=v"))
    apply_all(store.database, writer)
    assert members(writer, found) == {"desk:1"}


def test_a_worker_that_is_stopped_gives_the_job_back(
    store: Store, writer: MemoryIndexWriter
) -> None:
    def stop() -> None:
        raise StoppedError

    write_documents(store.database, writer, [make_chunk("desk:1")])
    found = define(store.database, "a", source("desk"))
    with pytest.raises(StoppedError):
        DocumentSetUpdater(store.database, writer, stop).apply_next()
    assert apply_all(store.database, writer) == 1
    assert members(writer, found) == {"desk:1"}


def test_all_is_compared_once_the_index_is_another_one(
    store: Store, writer: MemoryIndexWriter
) -> None:
    write_documents(store.database, writer, [make_chunk("desk:1"), make_chunk("web:1")])
    found = define(store.database, "a", source("desk"))
    apply_all(store.database, writer)
    writer.write(
        [
            Amend(document_id="desk:1", sets=frozenset()),
            Amend(document_id="web:1", sets=frozenset({found.label})),
        ]
    )
    document_sets.reapply_all(store.database)
    assert apply_all(store.database, writer) == 1
    assert members(writer, found) == {"desk:1"}
    assert document_sets.find(store.database, "a").progress.is_applied


SOURCES, TAGS, NAMES = ("desk", "web"), ("k=v", "l=w"), ("a", "b", "c")
IDS = [f"{name}:{path}" for name in SOURCES for path in ("1", "x/1", "x/y/2", "xy/3")]
RULES = st.one_of(
    st.builds(source, st.sampled_from(SOURCES)),
    st.builds(folder, st.sampled_from(SOURCES), st.sampled_from(["x", "x/", "x/y", "none"])),
    st.builds(tag, st.sampled_from(TAGS), st.sampled_from([None, *SOURCES])),
    st.builds(single, st.sampled_from(IDS)),
)
STEPS: st.SearchStrategy[tuple[str, str, list[object]]] = st.one_of(
    st.tuples(st.just("define"), st.sampled_from(NAMES), st.lists(RULES, max_size=4)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just([])),
    st.tuples(st.just("write"), st.sampled_from(IDS), st.lists(st.sampled_from(TAGS), max_size=2)),
    st.tuples(st.just("apply"), st.just(""), st.just([])),
)


def _belongs(document_id: str, tags: set[str], rule: SetRule) -> bool:
    """The rules once more, written another way."""
    of, _, path = document_id.partition(":")
    match rule.kind:
        case "source":
            return of == rule.source
        case "folder":
            parts = [part for part in rule.value.split("/") if part]
            return of == rule.source and path.split("/")[:-1][: len(parts)] == parts
        case "tag":
            return rule.value in tags and rule.source in (None, of)
        case _:
            return document_id == rule.value


@settings(max_examples=scaled(20, 300, "engines"), deadline=None)
@given(st.lists(STEPS, max_size=14))
def test_after_each_job_the_index_has_what_the_definitions_say(
    steps: list[tuple[str, str, list[object]]],
) -> None:
    with TemporaryDirectory() as path:
        store, writer = store_with(Path(path), *SOURCES), MemoryIndexWriter(EMBEDDER.dimension)
        tags: dict[str, set[str]] = {}
        rules: dict[str, list[SetRule]] = {}
        for generation, (kind, name, what) in enumerate([*steps, ("apply", "", [])], 1):
            match kind:
                case "define":
                    rules[name] = [each for each in what if isinstance(each, SetRule)]
                    define(store.database, name, *rules[name])
                case "remove":
                    if rules.pop(name, None) is not None:
                        found = document_sets.find(store.database, name)
                        document_sets.remove(store.database, found.id)
                case "write":
                    tags[name] = {str(each) for each in what}
                    chunk = make_chunk(name, *tags[name])
                    write_documents(store.database, writer, [chunk], generation)
                case _:
                    apply_all(store.database, writer)
                    expected = {
                        each: {
                            document
                            for document, held in tags.items()
                            if any(_belongs(document, held, rule) for rule in rules[each])
                        }
                        for each in rules
                    }
                    standing = document_sets.list_sets(store.database)
                    assert {each.name: members(writer, each) for each in standing} == expected
                    labels = {one for each in writer.held.values() for one in each.chunks[0].sets}
                    assert labels <= {each.label for each in standing}
        store.database.close()


DOCUMENTS = 6_000


def _apply_in(home: Path) -> None:
    writer = open_writer(home / "index", EMBEDDER.identity)
    apply_all(open_database(sqlite_in(home)), writer)


@pytest.mark.soak("slow")
def test_a_job_that_was_killed_is_finished_by_another_worker(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    writer = open_writer(tmp_path / "index", EMBEDDER.identity)
    write_documents(store.database, writer, [make_chunk(f"desk:{n:04}") for n in range(DOCUMENTS)])
    found = define(store.database, "a", source("desk"))
    process = multiprocessing.get_context("spawn").Process(target=_apply_in, args=(tmp_path,))
    process.start()
    end = time.monotonic() + 60
    while not (done := document_sets.find(store.database, "a").progress.done):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert 0 < done < DOCUMENTS
    assert not document_sets.find(store.database, "a").progress.is_applied
    assert apply_all(store.database, writer) == 1
    assert len(members(writer, found)) == DOCUMENTS
    progress = document_sets.find(store.database, "a").progress
    assert (progress.is_applied, progress.documents) == (True, DOCUMENTS)
    assert progress.done < DOCUMENTS
    store.database.close()
