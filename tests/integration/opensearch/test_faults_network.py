"""Slow, late and broken connections to a real server: deadlines hold, and what is repeated ends right."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from opensearchpy import OpenSearch

from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Amend, Delete, Filters, IndexChange, Written
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION
from tests.support.fault_index import IndexUnderTest, everything, generations, versions
from tests.support.fault_proxy import (
    HOST,
    Fault,
    FaultProxy,
    Late,
    RequestCut,
    ResponseCut,
    Trickling,
    fault_proxy,
)
from tests.support.index_engines import PUBLIC
from tests.support.opensearch_server import url_of

pytestmark = pytest.mark.soak("faults")

NAMES = [f"document {n}" for n in range(8)]
SHORT = 0.5
"""Seconds until the deadline."""
SLACK = 2.0
"""Seconds that a busy machine may take to notice; without deadlines it would be at least 5."""


@pytest.fixture
def url() -> str:
    """A server of one version: what is tested is our side of the connection."""
    return url_of("opensearch-2")


@pytest.fixture
def line(url: str) -> Iterator[FaultProxy]:
    with fault_proxy(url) as proxy:
        yield proxy


@pytest.fixture
def subject(line: FaultProxy, prefix: str) -> Iterator[IndexUnderTest]:
    client = connect(OpenSearchSettings(urls=(line.url,), timeout=20.0))
    subject = IndexUnderTest(client, prefix)
    subject.writer.write(versions(NAMES, 1))
    yield subject
    client.close()


Asking = Callable[[IndexUnderTest, Deadline], object]
ASKED: dict[str, Asking] = {
    "find": lambda subject, deadline: subject.find(deadline),
    "chunks": lambda subject, deadline: subject.index.chunks(
        [ChunkRange(NAMES[0], 0, 9)], PUBLIC, deadline
    ),
    "facets": lambda subject, deadline: subject.index.facets(Filters(), PUBLIC, deadline),
}
SLOW: dict[str, tuple[Fault, int]] = {
    "the first answer is late": (Late(5.0), 0),
    "the second answer is late": (Late(5.0), 1),
    "an answer trickles in": (Trickling(0.01), 0),
}


@pytest.mark.parametrize("slow", SLOW)
@pytest.mark.parametrize("asked", ASKED)
def test_a_deadline_holds_on_a_slow_line(
    subject: IndexUnderTest, line: FaultProxy, asked: str, slow: str
) -> None:
    fault, spared = SLOW[slow]
    right = ASKED[asked](subject, Deadline.after(60))
    before = len(line.asked("_msearch"))
    ASKED[asked](subject, Deadline.after(60))
    if len(line.asked("_msearch")) - before <= spared:
        return  # only one of the answers reports it
    begun = time.monotonic()
    with line.injecting(fault, "_msearch", spared), pytest.raises(DeadlineExceededError):
        ASKED[asked](subject, Deadline.after(SHORT))
    assert SHORT <= time.monotonic() - begun < SHORT + 2 * SLACK
    assert ASKED[asked](subject, Deadline.after(60)) == right


CUTS = (0, 1, 40, 120, 300)
"""Bytes of a response: none, some of its head, some of its body."""


@pytest.mark.parametrize("asked", ASKED)
def test_an_incomplete_response_raises_our_error_and_is_never_used(
    subject: IndexUnderTest, line: FaultProxy, asked: str
) -> None:
    right = ASKED[asked](subject, Deadline.after(60))
    for after in CUTS:
        with (
            line.injecting(ResponseCut(after), "_msearch", times=1),
            pytest.raises(TemporarilyUnavailableError, match=r"cannot be reached: \w[^<]*\.$"),
        ):
            ASKED[asked](subject, Deadline.after(60))
        assert ASKED[asked](subject, Deadline.after(60)) == right


def test_where_another_way_leads_to_the_cluster_a_cut_is_not_noticed(
    subject: IndexUnderTest, line: FaultProxy, url: str, prefix: str
) -> None:
    client = connect(OpenSearchSettings(urls=(line.url, url)))
    both = IndexUnderTest(client, prefix)
    right = generations(subject.find())
    for after in CUTS:
        with line.injecting(ResponseCut(after), "_msearch"):
            for _ in range(2):  # the driver asks them in turn
                assert generations(both.find()) == right
    client.close()


def changes() -> list[IndexChange]:
    """Changes of every kind."""
    return [
        *versions([*NAMES[:4], "new"], 2),
        Delete(NAMES[4]),
        Amend(document_id=NAMES[5], boost=2.0, sets=frozenset({"a"})),
    ]


AFTER = {**dict.fromkeys([*NAMES[:4], "new"], 2), **dict.fromkeys(NAMES[5:], 1)}
DONE = Written(replaced=5, chunks=20, deleted=1, amended=1)


def requests_of(subject: IndexUnderTest, line: FaultProxy) -> list[str]:
    """Return the requests of a write of the changes, in order."""
    before = len(line.seen)
    assert subject.writer.write(changes()) == DONE
    return [seen.line for seen in line.seen[before:]]


def start_again(subject: IndexUnderTest) -> None:
    subject.writer.write([Delete("new"), *map(Delete, NAMES)])
    subject.writer.write(versions(NAMES, 1))


@pytest.mark.parametrize(
    "fault",
    [ResponseCut(0), ResponseCut(60), RequestCut(30), RequestCut(400)],
    ids=["before the answer", "in the answer", "in the head", "in the body"],
)
def test_whichever_request_of_a_write_is_cut_it_goes_on_or_is_safe_to_repeat(
    subject: IndexUnderTest, line: FaultProxy, fault: Fault
) -> None:
    asked = requests_of(subject, line)
    assert sum(each.endswith("_bulk") for each in asked) >= 4
    for number, request in enumerate(asked):
        start_again(subject)
        with line.injecting(fault, spared=number, times=1):
            if request.endswith("_bulk"):
                assert subject.writer.write(changes()) == DONE, number
            else:
                written = None
                try:
                    written = subject.writer.write(changes())
                except TemporarilyUnavailableError:
                    subject.writer.write(changes())
                assert written in (None, DONE), number
        subject.check_holds(AFTER)


def test_a_connection_that_stays_broken_raises_before_patience_has_run_out_twice(
    subject: IndexUnderTest, line: FaultProxy, prefix: str
) -> None:
    hasty = IndexUnderTest(subject.client, prefix, patience=5.0)
    before = len(line.asked("_bulk"))
    begun = time.monotonic()
    with (
        line.injecting(ResponseCut(0), "_bulk"),
        pytest.raises(TemporarilyUnavailableError, match="OpenSearch cannot be reached"),
    ):
        hasty.writer.write(versions(["new"], 1))
    assert time.monotonic() - begun < 5.0 + 5 * SLACK
    # 0.1, 0.2, 0.4, 0.8, 1.6 s between them, plus or minus half; a steady 0.1 would be 50.
    assert 4 <= len(line.asked("_bulk")) - before <= 10
    hasty.writer.write(versions(["new"], 1))
    subject.check_holds({**dict.fromkeys(NAMES, 1), "new": 1})


def test_an_answer_that_is_too_late_for_a_write_is_repeated(
    client: OpenSearch, line: FaultProxy, prefix: str
) -> None:
    """The server processes every request twice, one after the other."""
    impatient = connect(OpenSearchSettings(urls=(line.url,), timeout=0.5))
    subject = IndexUnderTest(client, prefix)
    slow = IndexUnderTest(client, prefix, writing=impatient)
    subject.writer.write(versions(NAMES, 1))
    for number in range(3):
        with line.injecting(Late(1.0), "_bulk", spared=number, times=1):
            slow.writer.write(versions(NAMES, number + 2))
        subject.check_holds(dict.fromkeys(NAMES, number + 2))
    impatient.close()


def test_an_interrupted_scan_is_never_taken_for_complete(
    subject: IndexUnderTest, line: FaultProxy
) -> None:
    for after in CUTS:
        with (
            line.injecting(ResponseCut(after), "_search"),
            pytest.raises(TemporarilyUnavailableError),
        ):
            list(subject.writer.scan())
        with (
            line.injecting(ResponseCut(after), "_mget"),
            pytest.raises(TemporarilyUnavailableError),
        ):
            list(subject.writer.export())
    assert [each.id for each in subject.writer.scan()] == sorted(NAMES)


@contextmanager
def dark() -> Iterator[str]:
    """The address of a node that lost power: connection attempts are not answered."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        # With a full accept queue the system drops further connection attempts.
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(server.getsockname())
        yield f"http://{HOST}:{server.getsockname()[1]}"


def test_a_node_without_power_costs_a_search_a_part_of_its_time_and_later_ones_none(
    subject: IndexUnderTest, url: str
) -> None:
    right = subject.find()
    with dark() as one, dark() as other:
        client = connect(OpenSearchSettings(urls=(one, other, url)))
        index = OpenSearchIndex(client, subject.name, DIMENSION, VectorSettings(), BY_LANGUAGE)
        for _ in range(5):
            assert index.find([everything()], PUBLIC, Deadline.after(8.0)) == right
        begun = time.monotonic()
        assert index.find([everything()], PUBLIC, Deadline.after(8.0)) == right
        assert time.monotonic() - begun < SLACK, "both are known to be dark"
        client.close()


def test_where_all_nodes_are_without_power_the_deadline_holds(subject: IndexUnderTest) -> None:
    with ExitStack() as stack:
        # With TLS the driver connects before it sends.
        urls = [stack.enter_context(dark()).replace("http", "https") for _ in range(8)]
        client = connect(OpenSearchSettings(urls=tuple(urls)))
        index = OpenSearchIndex(client, subject.name, DIMENSION, VectorSettings(), BY_LANGUAGE)
        begun = time.monotonic()
        with pytest.raises(DeadlineExceededError):
            index.find([everything()], PUBLIC, Deadline.after(3.0))
        assert time.monotonic() - begun < 3.0 + SLACK
        client.close()
