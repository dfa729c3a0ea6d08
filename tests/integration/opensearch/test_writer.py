"""Writers that die, and writers that meet, at every possible step; what is then on the cluster."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as Unreachable

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Amend, Delete, IndexChange, Replace, Written
from indexing.opensearch import bulk_requests, write_protocol
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.naming import chunk_id, index_name
from indexing.opensearch.open_index import open_writer
from indexing.opensearch.record_mapping import ChunkLabels, DocumentRecord, document_record
from indexing.opensearch.writer import OpenSearchIndexWriter
from tests.support.chunks import IDENTITY, document

FINANCE = Access.to(["group:finance"])
BOTH = Access.to(["public", "group:finance"])


class Died(BaseException):
    """The writer is gone, as if its process had been killed."""


def _die() -> None:
    raise Died


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers that take over from others at the second look."""
    monkeypatch.setattr(write_protocol, "TAKEOVER_SECONDS", 0.0)
    monkeypatch.setattr(write_protocol, "POLL_SECONDS", 0.01)


@pytest.fixture
def writer(client: OpenSearch, prefix: str) -> OpenSearchIndexWriter:
    return open_writer(client, prefix, IDENTITY)


@contextmanager
def disturbed(
    url: str, prefix: str, number: int, happens: Callable[[], None]
) -> Iterator[OpenSearchIndexWriter]:
    """A writer to which something happens once the server has done what it was asked by the `number`-th
    request, and before the writer knows."""
    client = connect(OpenSearchSettings(urls=(url,)))
    writer = open_writer(client, prefix, IDENTITY)
    send, numbers = client.transport.perform_request, itertools.count(1)

    def perform(*args: Any, **kwargs: Any) -> Any:
        answer = send(*args, **kwargs)
        if next(numbers) == number:
            happens()
        return answer

    client.transport.perform_request = perform  # type: ignore[method-assign]
    yield writer
    client.close()


def held(client: OpenSearch, prefix: str) -> tuple[list[DocumentRecord], dict[str, Any]]:
    """Return all document records, and all chunks by id."""
    index = index_name(prefix, IDENTITY)
    client.indices.refresh(index=index)
    hits = client.search(index=index, body={"size": 10_000})["hits"]["hits"]
    chunks = {hit["_id"]: hit["_source"] for hit in hits if hit["_source"]["kind"] == "chunk"}
    records = [document_record(hit["_source"]) for hit in hits if hit["_id"] not in chunks]
    return sorted(records, key=lambda record: record.id), chunks


def counted(records: Sequence[DocumentRecord]) -> set[str]:
    """Return the ids of the chunks that these records make visible."""
    return {
        chunk_id(record.key, record.version.name, position)
        for record in records
        if record.state == "document"
        for position in range(record.version.chunks)
    }


def check_nothing_is_half(client: OpenSearch, prefix: str) -> None:
    records, chunks = held(client, prefix)
    assert counted(records) <= set(chunks)
    for record in records:
        for position in range(record.version.chunks if record.state == "document" else 0):
            found = chunks[chunk_id(record.key, record.version.name, position)]
            # The chunk has the readers of its record.
            assert record.shown_to <= set(found["readers"])
            assert record.sets <= set(found["sets"])


def check_nothing_is_left(client: OpenSearch, prefix: str) -> None:
    records, chunks = held(client, prefix)
    assert [(record.id, record.state) for record in records if record.unfinished] == []
    assert set(chunks) == counted(records)
    for record in records:
        for position in range(record.version.chunks):
            found = chunks[chunk_id(record.key, record.version.name, position)]
            labels = ChunkLabels.of(record).to_source()
            assert {name: found[name] for name in labels} == labels


TEXTS = ("one", "two", "three")
MOST = 60
"""Requests of a write, and more."""

Made: TypeAlias = Callable[[str], IndexChange]
"""A change of the document of that name."""

CHANGES: dict[str, Made] = {
    "replaced": lambda name: document(name, "uno", "due", generation=2),
    "emptied": lambda name: document(name, generation=2),
    "deleted": Delete,
    "narrowed": lambda name: Amend(document_id=name, access=NOBODY),
    "moved": lambda name: Amend(document_id=name, access=FINANCE, sets=frozenset({"new"})),
    "widened": lambda name: Amend(document_id=name, access=BOTH, boost=2.0),
}
LATER: dict[str, Made] = {
    **CHANGES,
    "replaced": lambda name: document(name, "un", "deux", "trois", "quatre", generation=3),
    "moved on": lambda name: Amend(document_id=name, access=EVERYBODY, sets=frozenset({"newest"})),
}
PAIRS = {
    f"{first}, {later}": (CHANGES[first], LATER[later]) for first in CHANGES for later in LATER
}
FIRSTS = [make(name) for name, (make, _) in PAIRS.items()]
LATERS = [make(name) for name, (_, make) in PAIRS.items()]


def before(name: str) -> Replace:
    return document(name, *TEXTS, sets=frozenset({"old"}))


def is_done(client: OpenSearch, prefix: str, change: IndexChange) -> bool:
    """Whether the document is as this change leaves it."""
    records, chunks = held(client, prefix)
    record = {each.id: each for each in records}.get(change.document_id)
    if record is None or isinstance(change, Delete):
        return record is None and isinstance(change, Delete)
    if isinstance(change, Amend):
        return record.access == change.access
    return [
        chunks[chunk_id(record.key, record.version.name, n)]["place"]["embedded"]
        for n in range(record.version.chunks)
    ] == [chunk.embedded_text for chunk in change.chunks]


def test_wherever_a_writer_dies_nothing_is_half_and_the_next_one_repairs_it(
    url: str, client: OpenSearch, writer: OpenSearchIndexWriter, prefix: str
) -> None:
    changes = [make(name) for name, make in CHANGES.items()] + [document("new", "fresh", "first")]
    for number in range(1, MOST):
        writer.write([Delete("new"), *(before(name) for name in CHANGES), before("other")])
        with disturbed(url, prefix, number, _die) as mortal:
            died = _dies(mortal, changes)
        check_nothing_is_half(client, prefix)
        written = writer.write(changes)
        check_nothing_is_left(client, prefix)
        assert all(is_done(client, prefix, each) for each in [*changes, before("other")])
        if not died:
            break
        # Only what was deleted before the writer died is missing.
        assert written.missing in ((), ("deleted",))
        assert (written.replaced, written.amended) == (3, 3)
    assert 8 <= number < MOST - 1


def _dies(writer: OpenSearchIndexWriter, changes: Sequence[IndexChange]) -> bool:
    try:
        writer.write(changes)
    except Died:
        return True
    return False


def test_an_answer_that_is_lost_is_no_change_that_is_lost(
    url: str, client: OpenSearch, writer: OpenSearchIndexWriter, prefix: str
) -> None:
    """The server processes the request, the connection ends before the response, and the request is repeated."""
    changes = [make(name) for name, make in CHANGES.items()] + [document("new", "fresh", "first")]
    for number in range(1, MOST):
        writer.write([Delete("new"), *map(before, CHANGES)])
        cut = Cut()
        with disturbed(url, prefix, number, cut) as unlucky:
            try:
                written = unlucky.write(changes)
            except TemporarilyUnavailableError:
                unlucky.write(changes)
            else:
                assert written == Written(replaced=3, chunks=4, deleted=1, amended=3)
        check_nothing_is_left(client, prefix)
        assert all(is_done(client, prefix, each) for each in changes)
        if not cut.happened:
            break
    assert 8 <= number < MOST - 1


class Cut:
    """A connection error, as the driver raises it."""

    happened = False

    def __call__(self) -> None:
        self.happened = True
        raise Unreachable("N/A", "cut", ConnectionResetError("cut"))


def test_wherever_two_writers_meet_every_document_is_as_one_of_them_left_it(
    url: str, client: OpenSearch, writer: OpenSearchIndexWriter, prefix: str
) -> None:
    """One writer makes all its changes between two requests of the other, as if that one were slow."""
    for number in range(1, MOST):
        writer.write([*map(Delete, PAIRS), *map(before, PAIRS)])
        other = Other(writer)
        with disturbed(url, prefix, number, other.write) as slow:
            slow.write(FIRSTS)
        check_one_of_both(client, prefix)
        if not other.written:
            break
    assert 8 <= number < MOST - 1


class Other:
    def __init__(self, writer: OpenSearchIndexWriter) -> None:
        self._writer = writer
        self.written: list[Written] = []

    def write(self) -> None:
        self.written.append(self._writer.write(LATERS))


def check_one_of_both(client: OpenSearch, prefix: str) -> None:
    check_nothing_is_left(client, prefix)
    for one, other in zip(FIRSTS, LATERS, strict=True):
        assert is_done(client, prefix, one) or is_done(client, prefix, other), one.document_id


STEPS = [(first, later) for first in (3, 4, 6) for later in (2, 5, 8, 9)]
"""At which of its requests each of the two waits; all 8 by 16 were tried once. The later one claims what it
takes over by its ninth."""


@pytest.mark.parametrize(("first_waits", "later_waits"), STEPS)
def test_a_writer_that_wakes_up_during_a_takeover_damages_nothing(
    url: str, client: OpenSearch, prefix: str, first_waits: int, later_waits: int
) -> None:
    """The first waits at one of its requests, the later one takes over and waits in the middle of that,
    the first goes on to its end, and then the later one does."""
    asleep, awake = threading.Event(), threading.Event()

    def sleep() -> None:
        asleep.set()
        awake.wait(60)

    def write() -> None:
        later.write(LATERS)
        asleep.set()

    def start() -> None:
        thread.start()
        asleep.wait(60)

    thread = threading.Thread(target=write)
    with (
        disturbed(url, prefix, first_waits, start) as first,
        disturbed(url, prefix, later_waits, sleep) as later,
    ):
        open_writer(client, prefix, IDENTITY).write(map(before, PAIRS))
        first.write(FIRSTS)
        awake.set()
        thread.join()
    check_one_of_both(client, prefix)


def test_one_who_writes_for_long_shows_that_it_is_at_work_and_sees_when_it_is_not_believed(
    url: str,
    client: OpenSearch,
    writer: OpenSearchIndexWriter,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_requests, "REQUEST_BYTES", 1)
    monkeypatch.setattr(write_protocol, "HEARTBEAT_SECONDS", -1.0)
    long, other = document("a", *(f"part {n}" for n in range(6))), document("a", "short")
    requests = set()
    for number in range(1, MOST):
        writer.write([Delete("a"), document("a", "before")])
        met: list[Written] = []
        with disturbed(url, prefix, number, lambda: met.append(writer.write([other]))) as slow:  # noqa: B023
            assert slow.write([long]) == Written(replaced=1, chunks=6)
        check_nothing_is_left(client, prefix)
        assert is_done(client, prefix, long) or is_done(client, prefix, other)
        if not met:
            break
        requests.add(number)
    # Each of six chunks is a request, and so is the heartbeat before it.
    assert len(requests) > 12


def test_what_a_dead_writer_left_of_other_documents_is_cleaned_up(
    url: str,
    client: OpenSearch,
    writer: OpenSearchIndexWriter,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_protocol, "CLEAN_UP_SECONDS", 0.0)
    writer.write([before("replaced"), before("widened")])
    # The fifth request is the commit: old chunks are left, and old labels too.
    with disturbed(url, prefix, 5, _die) as mortal:
        assert _dies(mortal, [CHANGES["replaced"]("replaced"), CHANGES["widened"]("widened")])
    others = open_writer(client, prefix, IDENTITY)
    monkeypatch.setattr(
        others,
        "_leftovers",
        write_protocol.LeftoverCleaner(client, index_name(prefix, IDENTITY), 0.0),
    )
    others.refresh()
    for name in ("b", "c"):
        with pytest.raises(AssertionError):
            check_nothing_is_left(client, prefix)
        others.write([document(name, "text")])
    check_nothing_is_left(client, prefix)
    assert is_done(client, prefix, CHANGES["replaced"]("replaced"))
    assert is_done(client, prefix, CHANGES["widened"]("widened"))
