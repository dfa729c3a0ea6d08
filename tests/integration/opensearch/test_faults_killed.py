"""A server that is killed, stopped or hangs during a request, and is then started again on its data."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from opensearchpy import OpenSearch

from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Delete, Found, IndexChange, Written
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.fault_index import (
    IndexUnderTest,
    check_none_is_mixed,
    generations,
    outcome,
    versions,
)
from tests.support.fault_proxy import FaultProxy, Meanwhile, fault_proxy
from tests.support.opensearch_server import START_SECONDS, Server

pytestmark = pytest.mark.soak("faults")

OLD = [f"old {n}" for n in range(20)]
NEW = [f"new {n}" for n in range(20)]
WHOLE = 10**9
"""More bytes than a request has."""
SLACK = 5.0
"""Seconds that a busy machine may take to notice."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("opensearch-2") as server:
        yield server


@pytest.fixture(scope="module")
def line(server: Server) -> Iterator[FaultProxy]:
    """Determines the moment at which the server is killed."""
    with fault_proxy(server.url) as proxy:
        yield proxy


@pytest.fixture
def client(server: Server, line: FaultProxy) -> Iterator[OpenSearch]:
    if not server.runs:
        server.start()
    client = connect(OpenSearchSettings(urls=(line.url,), timeout=20.0))
    yield client
    client.close()


def changes() -> list[IndexChange]:
    """Replace half of the old documents, delete one, and add new ones."""
    return [*versions([*OLD[:10], *NEW], 2), Delete(OLD[10])]


AFTER = {**dict.fromkeys([*OLD[:10], *NEW], 2), **dict.fromkeys(OLD[11:], 1)}
CHUNKS = 30 * 4


@pytest.fixture
def subject(client: OpenSearch, prefix: str) -> IndexUnderTest:
    subject = IndexUnderTest(client, prefix)
    subject.writer.write(versions(OLD, 1))
    return subject


def test_a_write_outlasts_a_server_that_is_killed_and_started_again(
    server: Server, line: FaultProxy, client: OpenSearch, prefix: str, subject: IndexUnderTest
) -> None:
    patient = IndexUnderTest(client, prefix, patience=START_SECONDS)
    with ThreadPoolExecutor(1) as pool:
        restarts: list[Future[None]] = []

        def crash() -> None:
            server.kill()
            restarts.append(pool.submit(server.start))

        with line.injecting(Meanwhile(crash, after=20_000), "_bulk", spared=1, times=1):
            written = patient.writer.write(changes())
        restarts.pop().result()
    assert written == Written(replaced=30, chunks=CHUNKS, deleted=1)
    subject.check_holds(AFTER)


KILLS = {
    # which bulk request of the write, how many bytes of it arrive, and seconds from then to the kill
    "while the chunks are written": (1, WHOLE, 0.01),
    "when the flip is done and unanswered": (2, WHOLE, 0.5),
}


@pytest.mark.parametrize("kill", KILLS)
def test_a_write_that_a_kill_ends_has_lost_nothing_and_may_be_repeated(
    server: Server,
    line: FaultProxy,
    client: OpenSearch,
    prefix: str,
    subject: IndexUnderTest,
    kill: str,
) -> None:
    number, arrived, wait = KILLS[kill]
    hasty = IndexUnderTest(client, prefix, patience=0.5)

    ended: list[float] = []

    def crash() -> None:
        time.sleep(wait)
        server.kill()
        ended.append(time.monotonic())

    with (
        line.injecting(Meanwhile(crash, arrived), "_bulk", spared=number, times=1),
        pytest.raises(TemporarilyUnavailableError, match="cannot be reached"),
    ):
        hasty.writer.write(changes())
    assert time.monotonic() - ended[0] < 0.5 + SLACK
    server.start()
    check_none_is_lost(subject)
    subject.writer.write(changes())
    subject.check_holds(AFTER)


def check_none_is_lost(subject: IndexUnderTest) -> None:
    """Check that every document is as it was acknowledged, or as the interrupted write would leave it."""
    found, scanned = find_between_equal_scans(subject)
    assert not found.partial
    check_none_is_mixed(found)
    shown = {name: actual[0] for name, actual in generations(found).items()}
    assert scanned == shown
    assert {name: shown[name] for name in OLD[11:]} == dict.fromkeys(OLD[11:], 1)
    assert {shown[name] for name in OLD[:10]} <= {1, 2}
    assert shown.get(OLD[10]) in (1, None)
    assert {shown.get(name) for name in NEW} <= {2, None}


def find_between_equal_scans(subject: IndexUnderTest) -> tuple[Found, dict[str, int]]:
    """Return hits and the generation of each document, both of one state of the index.

    A server that wakes up still carries out the requests that it received before, and makes them visible at
    some moment.
    """
    scanned: dict[str, int] | None = None
    while True:
        before = scanned
        found = subject.find()
        scanned = {each.id: each.generation for each in subject.writer.scan()}
        if scanned == before:
            return found, scanned


def asked(subject: IndexUnderTest, seconds: float) -> Callable[[], object]:
    return lambda: subject.find(Deadline.after(seconds))


def test_a_server_that_is_killed_during_a_search_is_found_again_when_it_is_back(
    server: Server, line: FaultProxy, subject: IndexUnderTest
) -> None:
    right = subject.find()
    for path in ("_msearch", ""):
        with (
            line.injecting(Meanwhile(server.kill, WHOLE), path, times=1),
            pytest.raises(TemporarilyUnavailableError, match="cannot be reached"),
        ):
            subject.find(Deadline.after(20))
    begun = time.monotonic()
    with pytest.raises(TemporarilyUnavailableError, match="cannot be reached"):
        subject.find(Deadline.after(20))
    assert time.monotonic() - begun < SLACK
    server.start()
    assert subject.find() == right


def test_a_server_that_is_stopped_while_it_is_searched_is_found_again_when_it_is_back(
    server: Server, subject: IndexUnderTest
) -> None:
    """No caller waits longer than the deadline, and results until then are complete."""
    right = generations(subject.find())
    reported: list[type[Exception] | None] = []
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(server.stop)
        while not stopped.done() or reported[-3:] != [TemporarilyUnavailableError] * 3:
            begun = time.monotonic()
            try:
                found = subject.find(Deadline.after(2.0))
                reported.append(None)
                assert found.partial or generations(found) == right
            except (TemporarilyUnavailableError, DeadlineExceededError) as error:
                reported.append(type(error))
            assert time.monotonic() - begun < 2.0 + SLACK
    server.start()
    assert generations(subject.find()) == right


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """It keeps its connections and sends nothing."""
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGSTOP)
    # The signal stops one thread after the other: those that still run could answer a search.
    os.waitid(os.P_PID, server._process.pid, os.WSTOPPED)
    try:
        yield
    finally:
        os.kill(server._process.pid, signal.SIGCONT)


def test_a_server_that_hangs_delays_no_caller_beyond_the_deadline(
    server: Server, subject: IndexUnderTest
) -> None:
    right = subject.find()
    with frozen(server):
        for _ in range(2):
            begun = time.monotonic()
            assert outcome(asked(subject, 0.5), DeadlineExceededError) is DeadlineExceededError
            assert 0.5 <= time.monotonic() - begun < 0.5 + SLACK
    assert subject.find() == right


def test_a_write_to_a_server_that_hangs_may_be_repeated_though_it_does_all_when_it_wakes(
    server: Server,
    line: FaultProxy,
    client: OpenSearch,
    prefix: str,
    subject: IndexUnderTest,
) -> None:
    """Requests that were repeated meanwhile are then processed repeatedly."""
    impatient = connect(OpenSearchSettings(urls=(line.url,), timeout=0.5))
    hasty = IndexUnderTest(client, prefix, patience=2.0, writing=impatient)
    for number in range(3):
        subject.writer.write([*map(Delete, NEW), *versions(OLD, 1)])
        with ThreadPoolExecutor(1) as pool:
            freezing = frozen(server)
            with (
                line.injecting(Meanwhile(freezing.__enter__, 0), "_bulk", spared=number, times=1),
                pytest.raises(TemporarilyUnavailableError, match="did not answer in time"),
            ):
                pool.submit(hasty.writer.write, changes()).result()
            freezing.__exit__(None, None, None)
        check_none_is_lost(subject)
        subject.writer.write(changes())
        subject.check_holds(AFTER)
    impatient.close()
