"""A sync of another process of the server is followed by what the database holds of it."""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from backend.api.followed_run import find_run_of, follow_run
from backend.api.server_sent_events import Event
from backend.api.sync_runs import SyncRun, SyncRunRegistry
from backend.container import Container
from backend.schemas.run import ProgressEvent
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import LOST, Process, Run
from backend.store.sync.sources import Source
from backend.sync.run_lease import this_process
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.pipeline import EmptyListing
from indexing.ingestion.progress import Progress, Report
from tests.unit.backend.api.conftest import SOURCE, make_container

SOON = 30.0


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return make_container(tmp_path)


@pytest.fixture
def source(container: Container, tmp_path: Path) -> Source:
    return sources.add(container.database, SOURCE, "folder", {"path": str(tmp_path)})


def _lives(run: Run) -> bool:
    del run
    return False


def _begin(container: Container, holder: Process) -> int:
    return run_transitions.begin(container.database, SOURCE, "incremental", holder, _lives)


def _report_progress(container: Container, run: int, done: int) -> None:
    progress = Progress(source=SOURCE, stage="indexing", item="Gate", done=done, total=4, rate=1.0)
    runs.report_progress(container.database, run, progress, {"documents": done})


def _end_of(following: Generator[Progress | Report, None, None]) -> Report:
    *_, last = following
    assert isinstance(last, Report)
    return last


def test_a_run_is_found_by_the_process_that_works_on_it(
    container: Container, source: Source
) -> None:
    run, here = _begin(container, this_process()), this_process()
    found = find_run_of(container.database, source.name, {here})
    assert found is not None
    assert found.id == run
    other = Process(here.host, here.number, "another start")
    assert find_run_of(container.database, source.name, {other}) is None
    run_transitions.close(container.database, run, "done")
    assert find_run_of(container.database, source.name, {here}) is None


@pytest.mark.usefixtures("source")
def test_progress_is_one_object_until_it_moves_and_the_report_is_last(container: Container) -> None:
    run = _begin(container, this_process())
    following = follow_run(container.database, run)
    first, again = next(following), next(following)
    assert again is first
    _report_progress(container, run, 3)
    moved = next(following)
    assert isinstance(moved, Progress)
    assert (moved.stage, moved.item, moved.done) == ("indexing", "Gate", 3)
    run_transitions.close(container.database, run, "done")
    assert _end_of(following) == Report(documents=3)


@pytest.mark.usefixtures("source")
def test_a_run_that_fails_says_why(container: Container) -> None:
    run = _begin(container, this_process())
    following = follow_run(container.database, run)
    next(following)
    run_transitions.close(container.database, run, "failed", "Connect the disk.")
    with pytest.raises(TemporarilyUnavailableError, match=r"Connect the disk\."):
        next(following)


@pytest.mark.usefixtures("source")
def test_a_run_whose_process_died_is_over(container: Container) -> None:
    here = this_process()
    run = _begin(container, Process(here.host, here.number, "another start"))
    with pytest.raises(TemporarilyUnavailableError, match=LOST):
        next(follow_run(container.database, run))


def test_a_server_follows_the_run_of_another_and_begins_none(
    container: Container, source: Source
) -> None:
    run = _begin(container, this_process())
    _report_progress(container, run, 4)
    syncs = SyncRunRegistry(lambda: container.sources, lambda: {this_process()})
    followed = syncs.begin(source, EmptyListing.REFUSE)
    event = asyncio.run(_first_event(followed))
    assert isinstance(event.data, ProgressEvent)
    assert event.data.done == 4
    run_transitions.close(container.database, run, "done")
    followed.join(SOON)
    assert followed.is_over
    assert [each.id for each in runs.history(container.database, SOURCE)] == [run]


async def _first_event(run: SyncRun) -> Event:
    following = run.follow()
    try:
        return await asyncio.wait_for(anext(following), SOON)
    finally:
        await following.aclose()


def test_following_ends_with_the_server(container: Container, source: Source) -> None:
    _begin(container, this_process())
    syncs = SyncRunRegistry(lambda: container.sources, lambda: {this_process()})
    syncs.begin(source, EmptyListing.REFUSE)
    assert syncs.unfinished() == [SOURCE]
    syncs.stop(SOON)
    assert syncs.unfinished() == []
