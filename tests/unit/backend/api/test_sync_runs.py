"""Runs that were asked for over HTTP: one at a time, followed by any number, stopped cleanly."""

import asyncio
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.api.server_sent_events import Event
from backend.api.sync_runs import STOPPED, SyncRun, SyncRunRegistry
from backend.container import Container
from backend.schemas.run import SyncReport
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import Process, Run
from backend.store.sync.sources import Source
from backend.sync.run_lease import this_process
from connectors.errors import ActionRequiredError
from indexing.ingestion.pipeline import EmptyListing
from indexing.ingestion.progress import Progress, Report
from tests.unit.backend.api.conftest import SOURCE, client_of, make_container, write_files

SOON = 30.0


def _progress(done: int) -> Progress:
    return Progress(source=SOURCE, stage="indexing", item=None, done=done, total=None, rate=1.0)


class Steps:
    """A run whose steps the test releases."""

    def __init__(self, count: int) -> None:
        self.go_on = threading.Semaphore(0)
        self.closed = threading.Event()
        self._count = count

    def __call__(self) -> Generator[Progress | Report, None, None]:
        try:
            for number in range(self._count):
                assert self.go_on.acquire(timeout=SOON)
                yield _progress(number)
            yield Report(documents=self._count)
        finally:
            self.closed.set()

    def let(self, steps: int) -> None:
        for _ in range(steps):
            self.go_on.release()


async def _all(run: SyncRun) -> list[Event]:
    return [event async for event in run.follow()]


def _report(event: Event) -> SyncReport:
    assert isinstance(event.data, SyncReport)
    return event.data


def test_any_number_follow_one_run() -> None:
    async def followed() -> list[list[Event]]:
        steps = Steps(5)
        run = SyncRun(SOURCE, steps)
        following = [asyncio.create_task(_all(run)) for _ in range(3)]
        await asyncio.sleep(0.05)
        steps.let(5)
        return await asyncio.wait_for(asyncio.gather(*following), SOON)

    for actual in asyncio.run(followed()):
        assert [event.name for event in actual[:-1]] == ["progress"] * (len(actual) - 1)
        assert actual[-1].name == "done"
        assert _report(actual[-1]).documents == 5


def test_who_comes_late_receives_the_end() -> None:
    steps = Steps(1)
    run = SyncRun(SOURCE, steps)
    steps.let(1)
    run.join(SOON)
    actual = asyncio.run(_all(run))
    assert actual[-1].name == "done"


def test_a_follower_receives_the_latest_and_not_each() -> None:
    """Ten thousand steps in no time are a handful of events, and no queue."""

    async def followed() -> list[Event]:
        steps = Steps(10_000)
        run = SyncRun(SOURCE, steps)
        steps.let(10_000)
        return await asyncio.wait_for(_all(run), SOON)

    assert len(asyncio.run(followed())) < 100


def test_a_run_goes_on_when_its_follower_leaves() -> None:
    async def leaves(run: SyncRun, steps: Steps) -> None:
        following = run.follow()
        steps.let(1)
        assert (await anext(following)).name == "progress"
        await following.aclose()

    steps = Steps(3)
    run = SyncRun(SOURCE, steps)
    asyncio.run(leaves(run, steps))
    steps.let(2)
    run.join(SOON)
    assert run.is_over
    assert _report(asyncio.run(_all(run))[-1]).documents == 3


def test_a_run_is_stopped_between_two_steps() -> None:
    steps = Steps(1_000)
    run = SyncRun(SOURCE, steps)
    run.stop()
    steps.let(1)
    run.join(SOON)
    assert steps.closed.is_set()
    assert _report(asyncio.run(_all(run))[-1]).error == STOPPED


def test_what_stops_a_run_is_reported_in_its_report() -> None:
    def fails() -> Generator[Progress | Report, None, None]:
        yield _progress(0)
        raise ActionRequiredError("Connect the disk.")

    run = SyncRun(SOURCE, fails)
    run.join(SOON)
    assert _report(asyncio.run(_all(run))[-1]).error == "Connect the disk."


def test_a_mistake_ends_a_run_with_an_error() -> None:
    def mistaken() -> Generator[Progress | Report, None, None]:
        yield _progress(0)
        raise KeyError("a mistake")

    run = SyncRun(SOURCE, mistaken)
    run.join(SOON)
    assert asyncio.run(_all(run))[-1].name == "error"


@pytest.fixture
def full(tmp_path: Path) -> tuple[Container, Source]:
    """A source that was added and not read yet."""
    folder = tmp_path / "files"
    write_files(folder)
    container = make_container(tmp_path)
    return container, sources.add(container.database, SOURCE, "folder", {"path": str(folder)})


def test_a_second_start_joins_the_first(full: tuple[Container, Source]) -> None:
    container, source = full
    syncs = SyncRunRegistry(lambda: container.sources)
    first = syncs.begin(source, EmptyListing.REFUSE)
    second = syncs.begin(source, EmptyListing.REFUSE)
    assert second is first
    first.join(SOON)
    assert syncs.running(SOURCE) is None
    assert syncs.begin(source, EmptyListing.REFUSE) is not first
    syncs.stop(SOON)
    assert syncs.unfinished() == []


def test_a_run_that_ends_before_it_is_followed_is_not_begun_anew(
    full: tuple[Container, Source],
) -> None:
    container, source = full
    SyncRunRegistry(lambda: container.sources).begin(source, EmptyListing.REFUSE).join(SOON)
    ended = runs.latest(container.database)[SOURCE]
    followed = SyncRunRegistry(lambda: container.sources).follow(ended)
    followed.join(SOON)
    assert asyncio.run(_all(followed))[-1].name == "done"
    assert runs.latest(container.database)[SOURCE] == ended


def test_a_stopped_run_is_recorded_and_gone_on_with(full: tuple[Container, Source]) -> None:
    container, source = full
    syncs = SyncRunRegistry(lambda: container.sources)
    syncs.begin(source, EmptyListing.REFUSE)
    syncs.stop(SOON)
    state = runs.latest(container.database)[SOURCE].state
    assert state in {"interrupted", "done"}  # it may have been quicker than we
    run = syncs.begin(source, EmptyListing.REFUSE)
    run.join(SOON)
    assert runs.latest(container.database)[SOURCE].state == "done"
    assert container.sources.ledger.count(SOURCE) == 6


def _begun_elsewhere(container: Container, holder: Process) -> None:
    def lives(run: Run) -> bool:
        del run
        return False

    run_transitions.begin(container.database, SOURCE, "sync", holder, lives)


def test_a_run_of_another_process_is_a_conflict(full: tuple[Container, Source]) -> None:
    container, _ = full
    _begun_elsewhere(container, this_process())  # not one of this server's own runs
    with client_of(container) as client:
        refused = client.post(f"/api/sources/{SOURCE}/sync")
    assert refused.status_code == 409
    assert "has been running since 20" in refused.json()["detail"]
    assert str(this_process().number) in refused.json()["detail"]


def test_a_run_of_a_process_that_died_is_taken_over(full: tuple[Container, Source]) -> None:
    container, _ = full
    here = this_process()
    _begun_elsewhere(container, Process(here.host, here.number, "another start"))
    with client_of(container) as client:
        assert _synced(client)


def _synced(client: TestClient) -> bool:
    return "event: done" in client.post(f"/api/sources/{SOURCE}/sync").text
