"""`quarry move` between two real indexes; the second stands where the cluster will be."""

from dataclasses import replace
from pathlib import Path

import pytest

from backend.cli.move import encoded, move_index
from backend.container import Engine, Quarry
from backend.settings import Settings
from backend.store import runs, sources
from backend.sync.maintenance_lock import sole_change
from backend.sync.process_identity import is_gone, this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.versions import Edition
from indexing.local import EmbeddedEditions
from indexing.rebuild.copy_index import Moved
from indexing.rebuild.standstill import Waiting
from tests.support.chunks import IDENTITY, document

EDITION = Edition(IDENTITY, "test")


@pytest.fixture
def quarry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quarry:
    far = EmbeddedEditions(tmp_path / "far")
    monkeypatch.setattr(Quarry, "_opensearch_editions", lambda _: far)
    quarry = Quarry(Settings(home=tmp_path / "home"))
    sources.add(quarry.database, "desk", "folder", {"path": "/srv/desk"})
    return quarry


def moved(quarry: Quarry, to: Engine) -> Moved:
    *_, last = move_index(quarry, to)
    assert isinstance(last, Moved)
    return last


def test_there_and_back_again(quarry: Quarry) -> None:
    near, far = quarry.editions_in("embedded"), quarry.editions_in("opensearch")
    near.open_keeper(EDITION).write(document(f"{n}", f"apples {n}") for n in range(20))
    done = moved(quarry, "opensearch")
    assert done.documents == 20
    assert far.active() == EDITION
    far.open_keeper(EDITION).write([document("20", "apples 20")])
    back = moved(quarry, "embedded")
    assert back.documents == 1  # the rest is there still
    assert len(list(near.open_keeper(EDITION).survey())) == 21
    told = encoded("embedded", back)
    assert (told.copied, told.documents, told.words, told.vectors) == (1, 21, 1.0, 1.0)
    assert "unset QUARRY_OPENSEARCH_URL" in told.advice


def test_no_index_cannot_be_moved(quarry: Quarry) -> None:
    with pytest.raises(ActionRequiredError, match="There is no opensearch index to move"):
        moved(quarry, "embedded")


def test_an_index_of_another_model_is_replaced_only_when_the_copy_is_whole(quarry: Quarry) -> None:
    near, far = quarry.editions_in("embedded"), quarry.editions_in("opensearch")
    near.open_keeper(EDITION).write(document(f"{n}", f"apples {n}") for n in range(1_500))
    former = Edition(replace(IDENTITY, model="former"), "former")
    far.open_keeper(former).write([document("old", "pears")])
    steps = move_index(quarry, "opensearch")
    next(steps)
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert (far.active(), far.building()) == (former, EDITION)
    assert 0 < moved(quarry, "opensearch").documents < 1_500
    assert (far.active(), far.building()) == (EDITION, None)


def test_a_sync_is_waited_for(quarry: Quarry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.rebuild.standstill.PATIENCE", 0.01)
    quarry.editions_in("embedded").open_keeper(EDITION).write([document("a", "apples")])
    run = runs.begin(quarry.database, "desk", "sync", this_process(), is_gone)
    steps = move_index(quarry, "opensearch")
    assert isinstance(next(steps), Waiting)
    runs.finish(quarry.database, run, "done", {})
    *_, last = steps
    assert isinstance(last, Moved)
    assert runs.latest(quarry.database)["desk"].kind == "move"


def test_while_the_index_is_rebuilt_it_is_not_moved(quarry: Quarry) -> None:
    quarry.editions_in("embedded").open_keeper(EDITION)
    with (
        sole_change(quarry.home),
        pytest.raises(TemporarilyUnavailableError, match="rebuilt or moved"),
    ):
        moved(quarry, "opensearch")
