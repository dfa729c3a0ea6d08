"""What a sync costs with rights by reference, against the same documents that everybody may read.

    python -m tests.benchmarks.rights_sync [documents]

Each sync has a process of its own, whose peak of memory is measured. The source makes documents up in 300 scopes, with 400 groups
of 5,000 people; then 50 people join a group and 50 leave one, and a permission sync is timed. The hashing embedder is used, so
that rights are measured and no model.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.store.database import Database, open_database, sqlite_url
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import runs, schedule, sources
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from connectors.access import EVERYBODY, Access, make_external_token
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Connector,
    DocumentListing,
    GroupItem,
    KnownVersions,
    ReaderGroup,
)
from connectors.document import Document, Section
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import IndexWriter
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.pipeline import Pipeline
from indexing.local import open_writer
from tests.benchmarks.rights import GROUPS, PEOPLE, SCOPES, WORDS, members, person
from tests.support.groups import token_of

EMBEDDER = HashingEmbedder()
_DOCUMENTS_A_CHECKPOINT = 500


@dataclass(frozen=True)
class Public:
    """A source that makes documents up. Implements `connectors.connector.Connector`."""

    source: str
    count: int

    def derive_access(self, document_id: str) -> Access:
        del document_id
        return EVERYBODY

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        del known
        for number in range(int(since.value) if since else 0, self.count):
            yield self._make(number)
            if not (number + 1) % _DOCUMENTS_A_CHECKPOINT:
                yield Checkpoint(str(number + 1))
        yield Checkpoint(str(self.count))

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        yield from (self._make(int(each.partition(":")[2])) for each in document_ids)

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        del since
        for number in range(self.count):
            document_id = self._to_id(number)
            yield DocumentListing(document_id, self.derive_access(document_id))

    def check(self) -> Iterator[Check]:
        yield from ()

    def _to_id(self, number: int) -> str:
        return f"{self.source}:{number:07}"

    def _make(self, number: int) -> Document:
        document_id = self._to_id(number)
        text = f"{WORDS[number % 8]} {WORDS[number // 8 % 8]} note {number}"
        return Document(
            id=document_id,
            source=self.source,
            title=f"Note {number}",
            sections=(Section(text=text),),
            link=f"https://{self.source}.test/{number}",
            media_type="text/plain",
            access=self.derive_access(document_id),
            version="1",
        )


@dataclass(frozen=True)
class Scoped(Public):
    """The same in scopes."""

    source_id: int
    groups_now: dict[str, list[str]] = field(
        default_factory=lambda: {
            name: of for name, of in members().items() if not name.startswith("x")
        }
    )

    def derive_access(self, document_id: str) -> Access:
        number = int(document_id.partition(":")[2]) % SCOPES
        return Access.to([make_external_token(self.source_id, f"s{number}")])

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        del since
        for name, of in self.groups_now.items():
            tokens = frozenset(token_of(self.source_id, one) for one in of)
            yield ReaderGroup(token_of(self.source_id, name), tokens, name)


@dataclass(frozen=True)
class Parts:
    """Implements `backend.sync.due_work.SyncParts`."""

    database: Database
    writer: IndexWriter
    made: Connector

    def connector(self, source: Source) -> Connector:
        del source
        return self.made

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, EMBEDDER, self.writer, StoredLedger(self.database))

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.writer, StoredLedger(self.database))


def run(kind: str, folder: Path, count: int) -> None:
    """Sync, then let people join and leave; print the memory in megabytes and the seconds of the permission sync."""
    with closing(open_database(sqlite_url(folder / "quarry.db"))) as database:
        source = sources.add(database, "desk", "folder", {"path": "/srv/desk"})
        made = Scoped("desk", count, source.id) if kind == "scoped" else Public("desk", count)
        parts = Parts(database, open_writer(folder / "index", EMBEDDER.identity), made)
        began = time.perf_counter()
        for _ in sync(database, source, made, parts.pipeline(source)):
            pass
        print(
            f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.1f}"
            f" seconds {time.perf_counter() - began:.1f}"
        )
        if isinstance(made, Scoped):
            measure_joiners(parts, made)


def measure_joiners(parts: Parts, made: Scoped) -> None:
    for number in range(50):
        made.groups_now[f"g{number}"][0] = person(PEOPLE + number)
    schedule.request_run(parts.database, "desk", "permissions")
    began = time.perf_counter()
    assert Engine(lambda: parts).light_due("desk")
    seconds = time.perf_counter() - began
    last = runs.latest(parts.database)["desk"]
    assert (last.kind, last.state, last.counts.get("amended", 0)) == ("permissions", "done", 0)
    print(f"joiners {seconds:.2f}")


def measure(kind: str, count: int) -> dict[str, float]:
    with TemporaryDirectory() as name:
        command = [sys.executable, "-m", "tests.benchmarks.rights_sync", kind, name, str(count)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        files = (file for file in Path(name).rglob("*") if file.is_file())
        disk = sum(file.stat().st_size for file in files) / 1e6
    return {"disk": disk, **dict(zip(said[::2], map(float, said[1::2]), strict=True))}


def compare(count: int) -> None:
    plain, scoped = measure("public", count), measure("scoped", count)
    print(f"{count:,} documents in {SCOPES} scopes, {GROUPS} groups of {PEOPLE:,} people")
    for name in ("memory", "disk", "seconds"):
        ratio = scoped[name] / plain[name]
        print(f"{name}: {plain[name]:.1f} public, {scoped[name]:.1f} in scopes: {ratio:.3f}")
    print(f"50 joiners and 50 leavers, a permission sync: {scoped['joiners']:.2f} s")


def main() -> None:
    match sys.argv[1:]:
        case [kind, folder, count]:
            run(kind, Path(folder), int(count))
        case [count]:
            compare(int(count))
        case _:
            compare(100_000)


if __name__ == "__main__":
    main()
