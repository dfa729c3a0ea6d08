"""All sources held still, or none; and one change of the whole index at a time."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from backend.store.sync import run_transitions, runs, sources
from backend.sync import maintenance_lock as module
from backend.sync.maintenance_lock import hold_all_sources, lock_index
from backend.sync.run_lease import is_gone, this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from tests.support.store import Store, store_at, store_with


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def begin(store: Store, source: str, kind: str = "sync") -> int:
    return run_transitions.begin(store.database, source, kind, this_process(), is_gone)


def states(store: Store) -> dict[str, tuple[str, str]]:
    latest = runs.latest(store.database)
    return {name: (run.kind, run.state) for name, run in latest.items()}


def test_no_source_can_be_synced_within_the_block(store: Store) -> None:
    with hold_all_sources(store.database, "reindex") as go_on:
        go_on()
        for source in ("desk", "web"):
            with pytest.raises(
                TemporarilyUnavailableError,
                match=rf"A run of '{source}' \(reindex\) has been running",
            ):
                begin(store, source)
    assert states(store) == {"desk": ("reindex", "done"), "web": ("reindex", "done")}
    begin(store, "desk")


def test_while_one_source_is_synced_none_is_held_and_nothing_is_noted(store: Store) -> None:
    run = begin(store, "web")
    for _ in range(3):
        with (
            pytest.raises(
                TemporarilyUnavailableError,
                match=r"A run of 'web' \(sync\) has been running since 20.*: ",
            ),
            hold_all_sources(store.database, "reindex"),
        ):
            pytest.fail("a sync goes on")
    assert states(store) == {"web": ("sync", "running")}
    begin(store, "desk")
    run_transitions.finish(store.database, run, "done", {})


def test_a_sync_that_comes_between_is_given_way_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`desk` is held already when `web` turns out to be taken."""
    monkeypatch.setattr(module, "_check_idle", lambda _: begin(store, "web"))
    with (
        pytest.raises(TemporarilyUnavailableError, match=r"A run of 'web' \(sync\)"),
        hold_all_sources(store.database, "reindex"),
    ):
        pytest.fail("a sync goes on")
    assert states(store) == {"desk": ("reindex", "failed"), "web": ("sync", "running")}
    begin(store, "desk")


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KeyboardInterrupt, "interrupted"),
        (lambda: ActionRequiredError("the disk is full"), "failed"),
    ],
)
def test_however_the_block_ends_the_sources_are_free_again(
    store: Store, error: Callable[[], BaseException], state: str
) -> None:
    with (
        pytest.raises((KeyboardInterrupt, ActionRequiredError)),
        hold_all_sources(store.database, "move"),
    ):
        raise error()
    assert states(store) == {"desk": ("move", state), "web": ("move", state)}
    begin(store, "desk")
    begin(store, "web")


def test_a_block_that_was_taken_away_says_so(store: Store) -> None:
    with hold_all_sources(store.database, "reindex") as go_on:
        (run,) = runs.history(store.database, "desk")
        run_transitions.finish(store.database, run.id, "interrupted", {}, "taken over")
        with pytest.raises(TemporarilyUnavailableError, match="taken over"):
            go_on()


def test_where_there_is_no_source_nothing_is_held(tmp_path: Path) -> None:
    empty = store_with(tmp_path)
    with hold_all_sources(empty.database, "reindex") as go_on:
        go_on()
    assert sources.list_sources(empty.database) == []


def test_a_second_change_of_the_index_is_refused(tmp_path: Path) -> None:
    for _ in range(2):
        with ExitStack() as stack:
            stack.enter_context(lock_index(tmp_path))
            with pytest.raises(TemporarilyUnavailableError, match="quarry reindex --status"):
                stack.enter_context(lock_index(tmp_path))
