"""What is not ready is named; what can be answered before is answered."""

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.access.machine_secret import MachineSecret
from backend.api import dependencies, warmup
from backend.api.app import create_app
from backend.api.authentication import MachineAuthenticator
from backend.api.warmup import Part, Warmup, freeze_garbage
from backend.container import Container
from backend.schemas.system import ReadinessResponse
from backend.settings import Settings
from backend.version import read_version
from connectors.access import Readers
from connectors.errors import ActionRequiredError
from tests.support.models import MODEL_CACHE
from tests.unit.backend.api.conftest import api, authorization

ADDRESS = "http://127.0.0.1:8321"
SOON = 30.0


def _states(readiness: ReadinessResponse) -> dict[str, str]:
    return {part.name: part.state for part in readiness.parts}


def _make_without_home(folder: Path) -> Container:
    return Container(Settings(home=folder / "state", models=MODEL_CACHE))


@contextmanager
def started(ready: Warmup) -> Iterator[None]:
    ready.start()
    try:
        yield
    finally:
        ready.stop()


def test_parts_are_made_one_after_the_other() -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        assert go_on.wait(SOON)

    made = Warmup((Part("first", lambda: None), Part("second", slow), Part("third", lambda: None)))
    with started(made):
        assert began.wait(SOON)
        assert _states(made.status()) == {"first": "ready", "second": "waiting", "third": "waiting"}
        assert not made.ready.wait(0)
        go_on.set()
        assert made.ready.wait(SOON)
    assert set(_states(made.status()).values()) == {"ready"}
    assert made.status().ready


def test_it_is_settled_once_all_is_made_or_something_fails_and_starts_once() -> None:
    go_on, made = threading.Event(), list[str]()

    def slow() -> None:
        assert go_on.wait(SOON)
        made.append("part")

    def fails() -> None:
        raise ActionRequiredError("Connect the disk.")

    succeeding, failing = Warmup((Part("part", slow),)), Warmup((Part("part", fails),))
    with started(succeeding), started(failing):
        succeeding.start()
        assert not succeeding.is_settled
        go_on.set()
        assert succeeding.ready.wait(SOON)
        assert succeeding.is_settled
        assert made == ["part"]
        end = time.monotonic() + SOON
        while not failing.is_settled:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert not failing.ready.is_set()


@pytest.mark.soak("slow")
def test_what_was_made_is_not_gone_through_for_garbage_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warmup, "freeze_garbage", freeze_garbage)
    kept = [[number] for number in range(1_000)]
    made = Warmup((Part("first", lambda: kept),))
    with started(made):
        assert made.ready.wait(SOON)
    try:
        assert gc.get_freeze_count() > len(kept)
        looked_at = {id(one) for one in gc.get_objects()}
        assert looked_at.isdisjoint(map(id, kept))
    finally:
        gc.unfreeze()


def test_what_fails_is_reported_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warmup, "PAUSE", 0.01)
    mended, tries = threading.Event(), list[int]()

    def broken() -> None:
        tries.append(1)
        if not mended.is_set():
            raise ActionRequiredError("Connect the disk.")

    made = Warmup((Part("index", broken),))
    with started(made):
        while _states(made.status())["index"] == "waiting":
            time.sleep(0.01)
        assert made.status().parts[0].detail == "Connect the disk."
        while len(tries) < 5:
            time.sleep(0.01)
        assert [one.message for one in caplog.records] == ["Not ready, index: Connect the disk."]
        mended.set()
        assert made.ready.wait(SOON)
    assert made.status().parts[0].detail == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_is_a_failure_as_well() -> None:
    def mistaken() -> None:
        raise KeyError("a mistake")

    made = Warmup((Part("index", mistaken),))
    others = set(threading.enumerate())  # A server that tests share has a thread of this name too.
    made.start()
    own = {one for one in set(threading.enumerate()) - others if one.name == "warm-up"}
    while _states(made.status())["index"] == "waiting":
        time.sleep(0.01)
    assert _states(made.status()) == {"index": "failed"}
    assert not made.ready.wait(0)
    for thread in own:
        thread.join(SOON)  # it reports the mistake at its end


def test_what_was_switched_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "PAUSE", 0.01)
    made, switches = list[str](), list[str]()
    ready = Warmup(
        (
            Part("index", lambda: made.append("index")),
            Part("search", lambda: made.append("search")),
        ),
        lambda: bool(switches) and bool(switches.pop()),
    )
    with started(ready):
        assert ready.ready.wait(SOON)
        switches.append("to another index version")
        end = time.monotonic() + SOON
        while (len(made) < 4 or not ready.ready.wait(0)) and time.monotonic() < end:
            time.sleep(0.01)
    assert made == ["index", "search"] * 2


def test_a_part_that_fails_since_it_was_switched_is_made_anew_from_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warmup, "PAUSE", 0.01)
    made = list[str]()

    def index() -> None:
        made.append("index")
        if made.count("index") == 1:
            raise ActionRequiredError("It is of another model.")

    ready = Warmup(
        (Part("model", lambda: made.append("model")), Part("index", index)),
        lambda: made.count("index") == 1,
    )
    with started(ready):
        assert ready.ready.wait(SOON)
    assert made == ["model", "index", "model", "index"]


def test_a_home_that_cannot_be_is_reported_and_the_server_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "PATIENCE", 0.05)
    blocked = tmp_path / "state"
    blocked.write_text("a file where the folder should be", encoding="utf-8")
    secret = MachineSecret("a secret that was read before the home went away")
    asker = MachineAuthenticator(secret, Readers.of(), lambda _: None)
    app = create_app(_make_without_home(tmp_path), asker)
    headers = {"Authorization": f"Bearer {secret.value}"}
    with TestClient(app, base_url=ADDRESS, headers=headers) as client:
        assert client.get("/healthz").json() == {"status": "ok", "version": read_version()}
        while (ready := client.get("/readyz")).json()["parts"][0]["state"] == "waiting":
            time.sleep(0.01)
        assert ready.status_code == 503
        assert "QUARRY_HOME" in ready.json()["parts"][0]["detail"]
        refused = client.post("/api/search", json={"query": "leave"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert "QUARRY_HOME" in refused.json()["detail"]


def test_an_empty_home_becomes_ready(tmp_path: Path) -> None:
    app = api(_make_without_home(tmp_path))
    with TestClient(app, base_url=ADDRESS, headers=authorization(app)) as client:
        found = client.post("/api/search", json={"query": "leave"})
        while found.status_code == 503:
            found = client.post("/api/search", json={"query": "leave"})
        assert (found.status_code, found.json()["results"]) == (200, [])
        assert client.get("/readyz").json()["ready"] is True
