"""`quarry move` between two real indexes; the second stands where the cluster will be."""

from dataclasses import replace
from pathlib import Path

import pytest

from backend.cli.move import move_index, to_report
from backend.composition.index import EngineName, IndexEngine
from backend.container import Container
from backend.settings import Settings
from backend.store.sync import run_transitions, runs, sources
from backend.sync.maintenance_lock import lock_index
from backend.sync.run_lease import is_gone, this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.versions import IndexVersion
from indexing.local import LocalIndexVersions
from indexing.rebuild.copy_index import CopyResult
from indexing.rebuild.events import WaitingForSync
from tests.support.chunks import IDENTITY, document

INDEX_VERSION = IndexVersion(IDENTITY, "test")


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Container:
    far = LocalIndexVersions(tmp_path / "far")
    monkeypatch.setattr(IndexEngine, "_opensearch_versions", lambda _: far)
    container = Container(Settings(home=tmp_path / "home"))
    sources.add(container.database, "desk", "folder", {"path": "/srv/desk"})
    return container


def moved(container: Container, to: EngineName) -> CopyResult:
    *_, last = move_index(container, to)
    assert isinstance(last, CopyResult)
    return last


def test_there_and_back_again(container: Container) -> None:
    near, far = container.engine.versions_in("embedded"), container.engine.versions_in("opensearch")
    near.open_writer(INDEX_VERSION).write(document(f"{n}", f"apples {n}") for n in range(20))
    done = moved(container, "opensearch")
    assert done.documents == 20
    assert far.active() == INDEX_VERSION
    far.open_writer(INDEX_VERSION).write([document("20", "apples 20")])
    back = moved(container, "embedded")
    assert back.documents == 1  # the rest is there still
    assert len(list(near.open_writer(INDEX_VERSION).scan())) == 21
    report = to_report("embedded", back)
    assert (report.copied, report.documents, report.words, report.vectors) == (1, 21, 1.0, 1.0)
    assert "unset QUARRY_OPENSEARCH_URL" in report.advice


def test_no_index_cannot_be_moved(container: Container) -> None:
    with pytest.raises(ActionRequiredError, match="There is no opensearch index to move"):
        moved(container, "embedded")


@pytest.mark.soak("slow")
def test_an_index_of_another_model_is_replaced_only_when_the_copy_is_whole(
    container: Container,
) -> None:
    near, far = container.engine.versions_in("embedded"), container.engine.versions_in("opensearch")
    near.open_writer(INDEX_VERSION).write(document(f"{n}", f"apples {n}") for n in range(1_500))
    former = IndexVersion(replace(IDENTITY, model="former"), "former")
    far.open_writer(former).write([document("old", "pears")])
    steps = move_index(container, "opensearch")
    next(steps)
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert (far.active(), far.building()) == (former, INDEX_VERSION)
    assert 0 < moved(container, "opensearch").documents < 1_500
    assert (far.active(), far.building()) == (INDEX_VERSION, None)


def test_a_sync_is_waited_for(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.rebuild.events.RETRY_SECONDS", 0.01)
    container.engine.versions_in("embedded").open_writer(INDEX_VERSION).write(
        [document("a", "apples")]
    )
    run = run_transitions.begin(container.database, "desk", "sync", this_process(), is_gone)
    steps = move_index(container, "opensearch")
    assert isinstance(next(steps), WaitingForSync)
    run_transitions.finish(container.database, run, "done", {})
    *_, last = steps
    assert isinstance(last, CopyResult)
    assert runs.latest(container.database)["desk"].kind == "move"


def test_while_the_index_is_rebuilt_it_is_not_moved(container: Container) -> None:
    container.engine.versions_in("embedded").open_writer(INDEX_VERSION)
    with (
        lock_index(container.home),
        pytest.raises(TemporarilyUnavailableError, match="rebuilds or moves"),
    ):
        moved(container, "opensearch")
