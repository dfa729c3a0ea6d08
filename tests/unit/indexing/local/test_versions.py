"""Index versions in folders: what a crash leaves, and what happens between two processes."""

import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.errors import ActionRequiredError, DamagedDataError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.protocols import Index
from indexing.index.versions import IndexVersion, IndexVersionReplacedError
from indexing.local import LocalIndex, LocalIndexVersions, open_index, versions
from indexing.local.database import writer_lock
from indexing.local.versions import Manifest, VersionFolder
from tests.support.chunks import IDENTITY, document, query
from tests.support.index_engines import PUBLIC, soon
from tests.support.soak import scaled

OLD = IndexVersion(IDENTITY, "old/model")
NEW = IndexVersion(replace(IDENTITY, model="The New/Model v2.0"), "new/model")


class Crash(Exception):
    """The process ends here."""


def folders(home: Path) -> set[str]:
    return {each.name for each in home.iterdir() if each.is_dir()}


def found(index: Index, words: str = "apples") -> list[str]:
    (ranking,) = index.find([query(words, size=200)], PUBLIC, soon()).rankings
    return [hit.chunk.document_id for hit in ranking]


def test_a_folder_is_named_by_its_model(tmp_path: Path) -> None:
    home = LocalIndexVersions(tmp_path)
    home.open_writer(NEW)
    (name,) = folders(tmp_path)
    assert name.startswith("the-new-model-v2-0-")
    home.start_build(NEW)
    home.activate(NEW)
    (after,) = folders(tmp_path)
    assert after.startswith("the-new-model-v2-0-")
    assert after != name


def test_the_manifest_names_the_folders(tmp_path: Path) -> None:
    known = Manifest(VersionFolder("a", OLD), VersionFolder("b", NEW))
    versions.write_manifest(tmp_path, known)
    assert versions.read_manifest(tmp_path) == known
    versions.write_manifest(tmp_path, Manifest())
    assert versions.read_manifest(tmp_path) == Manifest()


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 2}', '{"format": 1, "active": {}}'])
def test_a_damaged_manifest_is_an_error(tmp_path: Path, content: str) -> None:
    home = LocalIndexVersions(tmp_path)
    home.open_writer(OLD)
    (tmp_path / versions.FILE).write_text(content)
    before = folders(tmp_path)
    for ask in (
        home.active,
        lambda: home.open_index(OLD),
        lambda: home.start_build(NEW),
        home.discard_build,
    ):
        with pytest.raises(ActionRequiredError, match=r"editions\.json"):
            ask()
    assert folders(tmp_path) == before


def _crash(*_: object, **__: object) -> None:
    raise Crash


def before_the_exchange(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(versions, "write_manifest", _crash)


def after_the_exchange(patched: pytest.MonkeyPatch) -> None:
    write = versions.write_manifest

    def write_and_crash(home: Path, known: Manifest) -> None:
        write(home, known)
        raise Crash

    patched.setattr(versions, "write_manifest", write_and_crash)


def before_the_removal(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(shutil, "rmtree", _crash)


def in_the_middle_of_the_removal(patched: pytest.MonkeyPatch) -> None:
    def remove_some_and_crash(folder: Path, *, ignore_errors: bool) -> None:
        del ignore_errors
        (folder / "index.db").unlink()
        raise Crash

    patched.setattr(shutil, "rmtree", remove_some_and_crash)


@pytest.mark.parametrize(
    ("crash", "active"),
    [
        (before_the_exchange, OLD),
        (after_the_exchange, NEW),
        (before_the_removal, NEW),
        (in_the_middle_of_the_removal, NEW),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_switch_that_crashes_has_happened_or_has_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crash: Callable[[pytest.MonkeyPatch], None],
    active: IndexVersion,
) -> None:
    home = LocalIndexVersions(tmp_path)
    home.open_writer(OLD).write([document("old/model", "apples")])
    home.start_build(NEW).write([document("new/model", "apples")])
    with monkeypatch.context() as patched:
        crash(patched)
        with pytest.raises(Crash):
            home.activate(NEW)
    assert home.active() == active
    assert found(home.open_index(active)) == [active.model_name]
    home.activate(NEW)
    assert found(home.open_index(NEW)) == [NEW.model_name]
    assert len(folders(tmp_path)) == 1


@pytest.mark.parametrize("crash", [before_the_exchange, after_the_exchange])
def test_beginning_and_abandoning_may_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: Callable[[pytest.MonkeyPatch], None]
) -> None:
    home = LocalIndexVersions(tmp_path)
    home.open_writer(OLD).write([document("a", "apples")])
    for step in (lambda: home.start_build(NEW), home.discard_build):
        with monkeypatch.context() as patched:
            crash(patched)
            with pytest.raises(Crash):
                step()
        assert found(home.open_index(OLD)) == ["a"]
    home.start_build(NEW).write([document("b", "apples")])
    assert len(folders(tmp_path)) == 2
    home.discard_build()
    assert len(folders(tmp_path)) == 1


def test_an_index_whose_folder_went_while_it_was_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has read the register and comes late finds no folder, and must not make an empty one."""
    home = LocalIndexVersions(tmp_path)
    home.open_writer(OLD).write([document("before", "apples")])
    home.start_build(OLD).write([document("after", "apples")])

    def open_late(folder: Path, identity: EmbedderIdentity) -> LocalIndex:
        if home.building():
            home.activate(OLD)
        return open_index(folder, identity)

    monkeypatch.setattr(versions, "open_index", open_late)
    assert found(LocalIndexVersions(tmp_path).open_index(OLD)) == ["after"]


def test_a_write_that_waits_for_the_switch_is_refused(tmp_path: Path) -> None:
    """It would go to a folder that is about to be removed, and the ledger would believe that it is there."""
    home = LocalIndexVersions(tmp_path)
    writer = home.open_writer(OLD)
    writer.write([document("a", "apples")])
    home.start_build(NEW)
    (folder,) = [each for each in folders(tmp_path) if each.startswith("test-")]
    outcome: list[object] = []

    def write() -> None:
        try:
            outcome.append(writer.write([document("b", "apples")]))
        except IndexVersionReplacedError as error:
            outcome.append(error)

    with writer_lock(tmp_path / folder):
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.3)
        versions.write_manifest(
            tmp_path, Manifest(active=versions.read_manifest(tmp_path).building)
        )
    thread.join()
    assert isinstance(outcome[0], IndexVersionReplacedError)


@pytest.mark.soak("slow")
def test_a_search_goes_on_through_any_number_of_switches(tmp_path: Path) -> None:
    home = LocalIndexVersions(tmp_path)
    home.open_writer(OLD).write([document("index version 0", "apples")])
    seen: list[str] = []
    over = threading.Event()
    index = home.open_index(OLD)

    def search() -> None:
        while not over.is_set():
            seen.extend(found(index) or ["nothing"])

    searching = threading.Thread(target=search)
    searching.start()
    for number in range(1, 13):
        home.start_build(OLD).write([document(f"index version {number}", "apples")])
        home.activate(OLD)
        time.sleep(0.05)
    over.set()
    searching.join()
    assert seen == sorted(seen, key=lambda name: int(name.removeprefix("index version ")))
    assert found(index) == ["index version 12"]
    assert len(folders(tmp_path)) <= 2


def rebuild_until_killed(home: Path) -> None:
    """Each index version holds 40 documents of one number; the numbers grow."""
    versions = LocalIndexVersions(home)
    number = 0
    while True:
        number += 1
        writer = versions.start_build(OLD)
        writer.write(document(f"{n}", f"apples {number}", generation=number) for n in range(40))
        versions.activate(OLD)


@pytest.mark.soak("slow")
@pytest.mark.deep("engines")
def test_killed_at_any_moment_one_whole_version_is_active(tmp_path: Path) -> None:
    home = LocalIndexVersions(tmp_path)
    home.open_writer(OLD).write(document(f"{n}", "apples 0") for n in range(40))
    context, rng = multiprocessing.get_context("spawn"), random.Random(7)
    for _ in range(scaled(2, 6, "engines")):
        process = context.Process(target=rebuild_until_killed, args=(tmp_path,), daemon=True)
        process.start()
        assert process.pid is not None
        time.sleep(1.5 + 1.5 * rng.random())
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        (ranking,) = home.open_index(OLD).find([query("apples", size=100)], PUBLIC, soon()).rankings
        assert len(ranking) == 40
        assert len({hit.chunk.text for hit in ranking}) == 1
    home.discard_build()
    assert len(folders(tmp_path)) == 1


def test_an_index_that_was_lost_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    versions = LocalIndexVersions(tmp_path)
    versions.open_writer(OLD).write([document("a", "text")])
    (file,) = tmp_path.glob("*/index.db")
    for part in file.parent.glob("index.db*"):
        part.unlink()
    for open_version in (versions.open_index, versions.open_writer):
        with pytest.raises(DamagedDataError, match=r"The index is lost.*quarry reindex --rebuild"):
            open_version(OLD)


def test_what_is_open_does_not_create_an_empty_index_where_the_folder_was_removed(
    tmp_path: Path,
) -> None:
    home = LocalIndexVersions(tmp_path / "index")
    writer = home.open_writer(OLD)
    writer.write([document("a", "apples")])
    with home.open_index(OLD) as index:
        assert found(index) == ["a"]
        shutil.rmtree(tmp_path / "index")
        with pytest.raises(IndexVersionReplacedError, match="removed"):
            found(index)
        with pytest.raises(IndexVersionReplacedError, match="removed"):
            writer.write([document("b", "pears")])
    assert home.active() is None
