"""A run over many synthetic documents: memory, rate against the embedder alone, and two sources at once.

    .venv/bin/python -m tests.benchmarks.sync_scale [--documents 100000] [--shared 5000]

The engine's own worker threads read a source that makes its documents up, each about one chunk, embed them
with the real model and write index and ledger. Twenty times in the run the source holds back: what was read is
indexed to its end, and the embedder alone is given some of the same chunks. So the two take turns, and a machine
that is slower for a while is so for both. Then two more sources share the workers: one has begun when the
other comes.

Wanted: no growth of memory after the first tenth but for what the index maps; a rate of at least 0.9
of the embedder alone; while both sources have work, each gets half of it.
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from backend.sample import handbook
from backend.sources.status import read_status
from backend.store.database import Database, open_database, sqlite_url
from backend.store.documents import batches, documents
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import schedule, sources
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.worker_threads import WorkerThreads
from connectors.access import EVERYBODY
from connectors.connector import Change, Check, Checkpoint, DocumentListing, KnownVersions
from connectors.document import Document, Section
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import IndexWriter
from indexing.ingestion.batching import BatchSize
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.pipeline import Pipeline
from indexing.local import open_writer
from tests.support.embedder_baseline import embed, texts_of
from tests.support.models import minilm

LEGS = 20
PARTS = 5
WORDS = 120
"""Of a document: with its title most of one chunk."""
ALONE = 1_024
"""Chunks that the embedder is given alone after each leg, at most."""
_DOCUMENTS_A_CHECKPOINT = 200
_NEVER = timedelta(0)
_LOOK = 5.0
"""Seconds; to count all documents costs the processor the more the more there are."""


@dataclass(frozen=True, slots=True)
class Made:
    """A source that makes documents up. Implements `connectors.connector.Connector`."""

    source: str
    count: int
    vocabulary: Sequence[str]
    passed: Callable[[int], object] = int
    """Called with the number of documents that it has yielded, before it goes on."""

    def document(self, number: int) -> Document:
        """The same one every time."""
        chance = Random(f"{self.source} {number}")
        return Document(
            id=f"{self.source}:{number:07}",
            source=self.source,
            title=" ".join(chance.choices(self.vocabulary, k=4)),
            sections=(Section(text=" ".join(chance.choices(self.vocabulary, k=WORDS)) + "."),),
            link=f"https://{self.source}.test/{number}",
            media_type="text/plain",
            access=EVERYBODY,
            version="1",
        )

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        del known
        for number in range(int(since.value) if since else 0, self.count):
            yield self.document(number)
            if not (number + 1) % _DOCUMENTS_A_CHECKPOINT:
                yield Checkpoint(str(number + 1))
            self.passed(number + 1)
        yield Checkpoint(str(self.count))

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        yield from (self.document(int(each.partition(":")[2])) for each in document_ids)

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        del since
        yield from (
            DocumentListing(f"{self.source}:{number:07}", EVERYBODY) for number in range(self.count)
        )

    def check(self) -> Iterator[Check]:
        yield from ()


@dataclass(frozen=True)
class Place:
    """Where everything lies. Implements `backend.sync.due_work.Home`."""

    folder: Path
    connectors: dict[str, Made] = field(default_factory=dict)

    @cached_property
    def embedder(self) -> Embedder:
        return minilm()

    @cached_property
    def database(self) -> Database:
        return open_database(sqlite_url(self.folder / "quarry.db"))

    @cached_property
    def writer(self) -> IndexWriter:
        return open_writer(self.folder / "index", self.embedder.identity)

    @cached_property
    def ledger(self) -> StoredLedger:
        return StoredLedger(self.database)

    def connector(self, source: Source) -> Made:
        return self.connectors[source.name]

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, self.embedder, self.writer, self.ledger)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(self.embedder, self.writer, self.ledger)

    def add(self, made: Made) -> None:
        """A source that is read at once, and compared with no listing."""
        self.connectors[made.source] = made
        sources.add(self.database, made.source, "folder", {})
        for kind in schedule.LISTING_KINDS:
            schedule.set_interval(self.database, made.source, kind, _NEVER)

    def indexed(self, source: str) -> int:
        return documents.count_by_source(self.database, source).get(source, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """A part of the run, and the embedder alone on some of its chunks."""

    documents: int
    seconds: float
    processor: float
    """Seconds of processor time, of all threads."""
    alone: float
    """Seconds that the embedder alone needs for as many chunks."""
    alone_processor: float


@dataclass
class Turns:
    """The run and the embedder alone take turns: called for every document that a source yields."""

    place: Place
    made: Made
    marks: frozenset[int]
    legs: list[Leg] = field(default_factory=list)
    since: int = 0
    began: float = 0.0
    processor: float = 0.0

    def begin(self) -> None:
        self.began, self.processor = time.perf_counter(), time.process_time()

    def passed(self, number: int) -> None:
        if number not in self.marks:
            return
        while self.place.indexed(self.made.source) < number:
            time.sleep(0.1)
        while batches.count(self.place.database, self.made.source):
            time.sleep(0.1)
        seconds = time.perf_counter() - self.began
        processor = time.process_time() - self.processor
        share, alone, alone_processor = self._alone(range(self.since, number))
        leg = Leg(
            documents=number - self.since,
            seconds=seconds,
            processor=processor,
            alone=alone / share,
            alone_processor=alone_processor / share,
        )
        self.legs.append(leg)
        print(
            f"{number:7} documents: {leg.documents / seconds:5.0f} a second, alone"
            f" {leg.documents / leg.alone:5.0f}, ratio {leg.alone / seconds:.2f}; processor"
            f" {1000 * processor / leg.documents:.2f} ms a document, alone"
            f" {1000 * leg.alone_processor / leg.documents:.2f}",
            flush=True,
        )
        self.since = number
        self.begin()

    def _alone(self, numbers: range) -> tuple[float, float, float]:
        """Which share of the documents was embedded; wall and processor seconds of it."""
        some = numbers[-ALONE:]
        embedder = self.place.embedder
        texts = texts_of(map(self.made.document, some), embedder)
        began, processor = time.perf_counter(), time.process_time()
        embed(texts, embedder)
        spent = time.perf_counter() - began, time.process_time() - processor
        return len(some) / len(numbers), *spent


class Memory(threading.Thread):
    """What this process holds, looked at every five seconds."""

    def __init__(self, documents: Callable[[], int]) -> None:
        super().__init__(name="memory", daemon=True)
        self._documents = documents
        self._over = threading.Event()
        self.seen: list[tuple[int, float, float]] = []
        """Documents, megabytes of its own, megabytes resident in all."""

    def run(self) -> None:
        while not self._over.wait(_LOOK):
            self.seen.append((self._documents(), _megabytes("RssAnon"), _megabytes("VmRSS")))

    def stop(self) -> None:
        self._over.set()
        self.join()

    def report(self, count: int) -> None:
        later = [each for each in self.seen if each[0] >= count / 10]
        done, own, resident = (np.array(column) for column in zip(*later, strict=True))
        slope = np.polyfit(done, own, 1)[0] * 10_000 if len(later) > 1 else float("nan")
        print(
            f"memory after the first tenth: {own[0]:.0f} MB of its own, at the end {own[-1]:.0f},"
            f" at most {own.max():.0f}: {slope:+.2f} MB for 10,000 documents;"
            f" resident with what the index maps {resident[0]:.0f} to {resident[-1]:.0f} MB"
        )


def batch_ends(count: int) -> list[int]:
    """After how many documents a batch is full, up to the first that has at least `count`."""
    size = BatchSize()
    ends, most = [size.first], size.first
    while ends[-1] < count:
        most = min(2 * most, size.documents)
        ends.append(ends[-1] + most)
    return ends


def whole_run(place: Place, engine: Engine, wanted: int, vocabulary: Sequence[str]) -> None:
    ends = batch_ends(wanted)
    count = ends[-1]
    marks = {next(end for end in ends if end * LEGS >= count * leg) for leg in range(1, LEGS + 1)}
    turns = Turns(place, Made("big", count, vocabulary), frozenset(marks))
    place.add(Made("big", count, vocabulary, turns.passed))
    memory = Memory(lambda: place.indexed("big"))
    workers = WorkerThreads(engine, _at_once)
    turns.begin()
    memory.start()
    workers.start()
    _until_done(place.database, "big")
    workers.stop(60)
    memory.stop()
    seconds = sum(leg.seconds for leg in turns.legs)
    alone = sum(leg.alone for leg in turns.legs)
    print(f"{count} documents in {seconds:.0f} s, the embedder alone {alone:.0f} s", end=": ")
    print(f"ratio {alone / seconds:.3f}", end="; ")
    processor = sum(leg.processor for leg in turns.legs)
    alone_processor = sum(leg.alone_processor for leg in turns.legs)
    print(f"processor {processor:.0f} s, alone {alone_processor:.0f} s")
    memory.report(count)


def shared_run(place: Place, engine: Engine, count: int, vocabulary: Sequence[str]) -> None:
    """One source is at full batches when the other comes; from that one's first full batch on, shares are reported."""
    ends = batch_ends(count)
    full = [end for end in ends if end >= 2 * BatchSize().documents]
    marks = full[:: max(1, len(full) // PARTS)]
    workers = WorkerThreads(engine, _at_once)
    place.add(Made("first", 4 * count, vocabulary))
    workers.start()
    _until_indexed(place, "first", full[0])
    place.add(Made("second", count, vocabulary))
    counts = []
    for mark in marks:
        _until_indexed(place, "second", mark)
        counts.append((place.indexed("second"), place.indexed("first")))
    workers.stop(60)
    shares = [
        (second - second_before) / (second - second_before + first - first_before)
        for (second_before, first_before), (second, first) in pairwise(counts)
    ]
    reported = " ".join(f"{share:.2f}" for share in shares)
    print(f"share of the source that came second, in {len(shares)} parts of its run: {reported}")


def _until_indexed(place: Place, source: str, documents: int) -> None:
    while place.indexed(source) < documents:
        time.sleep(0.1)


def _until_done(database: Database, source: str) -> None:
    while (now := read_status(database, source)).state != "done":
        if now.state in {"failed", "needs a decision"}:
            raise RuntimeError(f"{source}: {now.run.error if now.run else now.state}")
        time.sleep(_LOOK)


def _megabytes(line: str) -> float:
    """Of the file /proc/self/status, as proc(5) has it."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition(f"{line}:")[2].split(maxsplit=1)[0]) / 1024


def _at_once(seconds: float) -> bool:
    del seconds
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--shared", type=int, default=5_000)
    given = parser.parse_args()
    texts = (path.read_text(encoding="utf-8") for path in handbook().rglob("*.md"))
    vocabulary = sorted(
        {word for text in texts for word in text.split() if word.isalpha() and word.isascii()}
    )
    with TemporaryDirectory() as home:
        place = Place(Path(home))
        with closing(place.database):
            for run, count in ((whole_run, given.documents), (shared_run, given.shared)):
                if count:
                    run(place, Engine(lambda: place), count, vocabulary)


if __name__ == "__main__":
    main()
