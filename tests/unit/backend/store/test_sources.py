"""The sources."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.store.documents import batches
from backend.store.sync import run_transitions, runs, schedule, sources
from backend.store.sync.runs import Process
from connectors.connector import Checkpoint
from connectors.errors import ActionRequiredError
from indexing.ingestion.ledger import CheckpointReset
from tests.support.store import Store, document, gone, source_service

ME = Process("here", 1, "1")


def test_sources_are_listed_by_name_with_their_settings(store: Store) -> None:
    sources.add(store.database, "規程", "folder", {"path": "/srv/規程", "exclude": ["*.tmp"]})
    found = sources.list_sources(store.database)
    assert [source.name for source in found] == ["desk", "web", "規程"]
    assert found[-1].settings == {"path": "/srv/規程", "exclude": ["*.tmp"]}
    assert found[-1].kind == "folder"
    assert found[-1].checkpoint is None
    assert found[-1].created_at.utcoffset() is not None
    assert sources.find(store.database, "規程") == found[-1]


@pytest.mark.parametrize("name", ["", "a:b", "a b", "a/b", "x" * 101, "tab\t"])
def test_a_name_that_ids_could_not_begin_with_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a source"):
        sources.add(store.database, name, "folder", {})


def test_a_name_is_given_once(store: Store) -> None:
    with pytest.raises(ActionRequiredError, match="'desk' already"):
        sources.add(store.database, "desk", "folder", {})


def test_an_unknown_source_is_answered_with_those_there_are(store: Store) -> None:
    with pytest.raises(ActionRequiredError, match=r"no source named 'dest'.*desk, web"):
        sources.find(store.database, "dest")


def test_a_checkpoint_is_what_was_reached_last(store: Store) -> None:
    run = run_transitions.begin(store.database, "desk", "incremental", ME, gone)
    for checkpoint in ("1", "2"):
        batches.save(store.database, run, [], Checkpoint(checkpoint))
    assert sources.find(store.database, "desk").checkpoint == Checkpoint("2")
    assert sources.find(store.database, "web").checkpoint is None
    store.ledger.save([CheckpointReset("desk")])
    assert sources.find(store.database, "desk").checkpoint is None


def test_only_an_empty_source_is_removed(store: Store) -> None:
    store.hold(document("desk:a"))
    with pytest.raises(ActionRequiredError, match="still has documents"):
        sources.remove(store.database, "desk")
    sources.remove(store.database, "web")
    assert [source.name for source in sources.list_sources(store.database)] == ["desk"]


def test_other_settings_begin_from_the_beginning(store: Store) -> None:
    desk = sources.find(store.database, "desk")
    run = run_transitions.begin(store.database, "desk", "incremental", ME, gone)
    batches.save(store.database, run, [], Checkpoint("page 7"))
    same = sources.edit(store.database, "desk", desk.settings, credential="sealed")
    assert same.checkpoint == Checkpoint("page 7")
    other = sources.edit(store.database, "desk", {**desk.settings, "include": ["*.md"]})
    assert other.checkpoint is None
    assert other.credential == "sealed"


def test_a_run_by_former_settings_ends_and_saves_nothing_more(store: Store, tmp_path: Path) -> None:
    run = run_transitions.begin(store.database, "desk", "incremental", ME, gone)
    source_service(store.database).edit("desk", {"path": str(tmp_path)}, None)
    with pytest.raises(runs.RunEndedError, match="was changed"):
        batches.save(store.database, run, [], Checkpoint("9"))
    assert sources.find(store.database, "desk").checkpoint is None
    (due,) = (
        one
        for one in schedule.list_due(store.database, datetime.now(UTC), gone)
        if one.source == "desk"
    )
    assert due.kind == "first"


def test_a_removal_goes_on_whatever_the_settings(store: Store, tmp_path: Path) -> None:
    run = run_transitions.begin(store.database, "desk", "removal", ME, gone)
    source_service(store.database).edit("desk", {"path": str(tmp_path)}, None)
    assert runs.find(store.database, run).state == "running"
