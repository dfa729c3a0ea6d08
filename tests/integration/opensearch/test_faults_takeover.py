"""A writer that is slow but alive, and another that takes over from it: neither mistakes the other's step for its own."""

import threading
from collections.abc import Iterator

import pytest

from indexing.index.protocols import Amend, Written
from indexing.opensearch import write_protocol
from indexing.opensearch.client import OpenSearchSettings, connect
from tests.support.fault_index import IndexUnderTest, versions
from tests.support.fault_proxy import Afterwards, FaultProxy, fault_proxy

pytestmark = pytest.mark.soak("faults")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers that take over at the second look, and send a heartbeat before each chunk."""
    monkeypatch.setattr(write_protocol, "TAKEOVER_SECONDS", 0.0)
    monkeypatch.setattr(write_protocol, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(write_protocol, "HEARTBEAT_SECONDS", 0.0)


@pytest.fixture
def lines(url: str) -> Iterator[tuple[FaultProxy, FaultProxy]]:
    with fault_proxy(url) as one, fault_proxy(url) as other:
        yield one, other


def test_a_slow_writer_does_not_take_the_claim_of_who_took_over_for_its_own(
    lines: tuple[FaultProxy, FaultProxy], prefix: str
) -> None:
    """The slow one has announced its version when the other claims it in order to clear it away; then the slow one
    writes it, and only then the other clears."""
    clients = [connect(OpenSearchSettings(urls=(line.url,))) for line in lines]
    slow, other = (IndexUnderTest(client, prefix) for client in clients)
    slow.writer.write(versions(["a"], 1))
    claimed, written = threading.Event(), threading.Event()
    reported: list[Written] = []

    def take_over() -> None:
        reported.append(other.writer.write([Amend(document_id="a", boost=2.0)]))

    thread = threading.Thread(target=take_over)

    def wait_for_claim() -> None:
        thread.start()
        assert claimed.wait(30)

    def wait_for_chunks() -> None:
        claimed.set()
        # If the slow one notices, it waits for this one in turn.
        written.wait(3)

    with (
        lines[0].injecting(Afterwards(wait_for_claim), "_bulk", times=1),
        lines[1].injecting(Afterwards(wait_for_chunks), "_bulk", times=1),
    ):
        assert slow.writer.write(versions(["a"], 2)) == Written(replaced=1, chunks=4)
        written.set()
        thread.join()
    assert reported == [Written(amended=1)]
    slow.check_holds({"a": 2})
    for client in clients:
        client.close()
