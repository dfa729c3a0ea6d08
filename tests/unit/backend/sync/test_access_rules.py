"""Rules of an `access.yaml` that are edited while documents are read: nobody reads a file by the readers of another rule."""

import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import delete

from backend.access.readers import resolve_readers
from backend.store.database import Database
from backend.store.schema.tables import group_listings, memberships, source_groups
from backend.store.sync import runs, schedule, sources
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from connectors.access import PUBLIC, Access, Readers
from connectors.files.paths import GlobPattern
from connectors.sources.folder.connector import FolderConnector, FolderSettings
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Amend
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.ledger import AccessAmended
from indexing.ingestion.pipeline import Pipeline
from tests.support.databases import sqlite_in
from tests.support.memory_index_writer import WatchedIndexWriter
from tests.support.soak import scaled
from tests.support.store import Store, store_at

pytestmark = pytest.mark.deep("engines")

EMBEDDER = HashingEmbedder()
ASKERS = ["user:ann@example.com", "user:bo@example.com", "group:hr"]
PATTERNS = ["**", "**/*.md", "hr/**", "hr/*", "hr/pay.md", "it/**", "*/pay.md"]
FILES = ["hr/pay.md", "hr/leave.md", "hr/old/pay.md", "it/pay.md", "it/code.md", "top.md"]
EDITS = scaled(scaled(12, 25, "slow"), 400, "engines")


@dataclass(frozen=True)
class Rules:
    """What an `access.yaml` says, and what is right by it."""

    rules: Sequence[tuple[str, Sequence[str]]]

    def save(self, folder: Path) -> None:
        written = [{"match": match, "readers": [*readers]} for match, readers in self.rules]
        # JSON is YAML.
        (folder / "access.yaml").write_text(json.dumps({"rules": written}))

    def readers(self, path: str) -> set[str]:
        for match, readers in self.rules:
            if GlobPattern.parse(match).matches(path.split("/")):
                return set(ASKERS) if PUBLIC in readers else set(readers)
        return set()


@dataclass
class Desk:
    """A folder that is synced. Implements `backend.sync.due_work.SyncParts`."""

    folder: Path
    store: Store
    writer: WatchedIndexWriter = field(
        default_factory=lambda: WatchedIndexWriter(EMBEDDER.dimension)
    )
    chance: random.Random = field(default_factory=lambda: random.Random(2026))

    @property
    def database(self) -> Database:
        return self.store.database

    def connector(self, source: Source) -> FolderConnector:
        return FolderConnector(source.name, source.id, FolderSettings(path=self.folder))

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, EMBEDDER, self.writer, self.store.ledger)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.writer, self.store.ledger)

    def edit_files(self) -> None:
        for path in self.chance.sample(FILES, 2):
            (self.folder / path).write_text(f"Note {self.chance.random()}")

    def draw_rules(self) -> Rules:
        return Rules([(match, self.draw_readers()) for match in self.chance.sample(PATTERNS, 3)])

    def edit_rules(self, rules: Rules) -> Rules:
        """Return the rules after one was moved or replaced, and all were given to others."""
        matches = [match for match, _ in rules.rules]
        matches.remove(self.chance.choice(matches))
        others = sorted(set(PATTERNS).difference(matches))
        matches.insert(self.chance.randrange(3), self.chance.choice(others))
        return Rules([(match, self.draw_readers()) for match in matches])

    def draw_readers(self) -> list[str]:
        return self.chance.choice(
            [[], ASKERS[:1], ASKERS[1:2], ASKERS[2:], ASKERS[:2], ASKERS[1:], [PUBLIC]]
        )

    def sync_all(self) -> None:
        source = sources.find(self.database, "desk")
        list(sync(self.database, source, self.connector(source), self.pipeline(source)))

    def sync_content(self) -> None:
        engine = Engine(lambda: self)
        engine.light_due("desk")  # What an earlier run requested comes first.
        schedule.request_run(self.database, "desk", "incremental")
        with ThreadPoolExecutor(1) as pool:
            fetching = pool.submit(engine.fetch_due, "desk")
            try:
                while not fetching.done():
                    engine.index_due(along=True)
            finally:
                engine.stopping.set()  # It would wait for what a failed check left.
            assert fetching.result()
        self._check_done("incremental")

    def sync_permissions(self) -> None:
        schedule.request_run(self.database, "desk", "permissions")
        assert Engine(lambda: self).light_due("desk")
        self._check_done("permissions")

    def found(self) -> dict[str, set[str]]:
        """Who of the askers is shown each file by the index."""
        held = {one: resolve_readers(self.database, Readers.of(one)).tokens for one in ASKERS}
        return {
            one.id.partition(":")[2]: {
                asker for asker, tokens in held.items() if tokens & one.access.readers
            }
            for one in self.writer.scan()
        }

    def forget_groups(self, rules: Rules) -> None:
        """Make it what it was when documents carried all the readers of their rules."""
        carried = {one.id: rules.readers(one.id.partition(":")[2]) for one in self.writer.scan()}
        access = {each: Access.to(readers) for each, readers in carried.items()}
        self.writer.write(Amend(document_id=one, access=those) for one, those in access.items())
        self.store.ledger.save([AccessAmended(one, those) for one, those in access.items()])
        with self.database.writing() as connection:
            for table in (memberships, source_groups, group_listings):
                connection.execute(delete(table))

    def _check_done(self, kind: str) -> None:
        run = runs.latest(self.database)["desk"]
        assert (run.kind, run.state) == (kind, "done")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "files"
    for path in FILES:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"Note of {path}")
    with store_at(sqlite_in(tmp_path), "desk") as store:
        yield Desk(folder, store)


@pytest.mark.deep("slow")
def test_between_any_two_writes_a_file_is_read_by_readers_of_its_own_rules(desk: Desk) -> None:
    in_force = [desk.draw_rules()]
    in_force[0].save(desk.folder)
    desk.sync_all()

    def check() -> None:
        for path, found in desk.found().items():
            assert found <= set().union(*(rules.readers(path) for rules in in_force)), path

    desk.writer.watch = check
    for _ in range(EDITS):
        in_force.append(desk.edit_rules(in_force[-1]))
        in_force[-1].save(desk.folder)
        if desk.chance.random() < 0.5:
            desk.edit_files()
            desk.sync_content()
            check()
        if desk.chance.random() < 0.5:
            desk.sync_permissions()
            del in_force[:-1]
            assert desk.found() == {path: in_force[0].readers(path) for path in FILES}


def test_documents_that_carry_their_readers_are_brought_over_by_a_permission_sync(
    desk: Desk,
) -> None:
    before, after = (
        Rules([("hr/**", ASKERS[:2]), ("**", [ASKERS[2]])]),
        Rules([("hr/**", ASKERS[1:]), ("**", [ASKERS[2]])]),
    )
    before.save(desk.folder)
    desk.sync_all()
    desk.forget_groups(before)
    assert desk.found() == {path: before.readers(path) for path in FILES}
    after.save(desk.folder)

    def check() -> None:
        for path, found in desk.found().items():
            former, coming = before.readers(path), after.readers(path)
            assert former & coming <= found <= former | coming

    desk.writer.watch = check
    desk.sync_permissions()
    assert desk.found() == {path: after.readers(path) for path in FILES}
    assert all(isinstance(each, Amend) for each in desk.writer.log[len(FILES) :])


def test_a_rule_gains_a_reader_without_a_write(desk: Desk) -> None:
    Rules([("hr/**", ASKERS[:1]), ("**", [PUBLIC])]).save(desk.folder)
    desk.sync_all()
    written = len(desk.writer.log)
    after = Rules([("hr/**", ASKERS), ("**", [PUBLIC])])
    after.save(desk.folder)
    desk.sync_permissions()
    assert desk.found() == {path: after.readers(path) for path in FILES}
    assert len(desk.writer.log) == written


def test_rules_that_cannot_be_read_change_nothing(desk: Desk) -> None:
    rules = Rules([("hr/**", ASKERS[:1])])
    rules.save(desk.folder)
    desk.sync_all()
    (desk.folder / "access.yaml").write_text("rules: [")
    schedule.request_run(desk.database, "desk", "permissions")
    assert Engine(lambda: desk).light_due("desk")
    run = runs.latest(desk.database)["desk"]
    assert (run.state, "access.yaml, line 1" in (run.error or "")) == ("failed", True)
    assert desk.found() == {path: rules.readers(path) for path in FILES}
