"""Who was removed from a private repository of GitHub finds nothing of it any more, at once."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backend.store import runs, schedule, sources
from backend.store.database import Database
from backend.store.sources import Source
from backend.sync.engine import Engine
from backend.sync.runner import sync
from connectors.document import Readers
from connectors.sources.github import GitHubConnector
from indexing.carrying import Carrying
from indexing.deadline import Deadline
from indexing.embedded import open_index, open_keeper
from indexing.embedding import Vectors
from indexing.hashing import HashingEmbedder
from indexing.index import Index, IndexKeeper, IndexQuery
from indexing.pipeline import Pipeline
from tests.support.repository import Write
from tests.support.services.github import GitHub
from tests.support.services.github_place import Place, of_git, served
from tests.support.services.github_state import Discussion, Issue, Repo
from tests.support.store import Store, store_with

ANN = Readers.of("user:ann@example.com")
BOB = Readers.of("user:bob@example.com")
PARTS = ("issues", "discussions", "wiki", "files")
ALL = {"2/1", "2/discussions/2", "2/wiki/Home.md", "2/files/plan.md"}


@dataclass(frozen=True)
class Counting(HashingEmbedder):
    """Tells what was embedded."""

    passages: list[str] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages.extend(texts)
        return super().embed_passages(texts)


@dataclass(frozen=True)
class Office:
    """Implements `backend.sync.engine.Home`, with the index of one machine."""

    store: Store
    place: Place
    embedder: Counting
    index: Index
    keeper: IndexKeeper

    @property
    def database(self) -> Database:
        return self.store.database

    def connector(self, source: Source) -> GitHubConnector:
        assert source.name == "hub"
        return self.place.connect("acme/board", contents=PARTS)

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, self.embedder, self.keeper, self.store.ledger)

    def carrying(self) -> Carrying:
        return Carrying(self.embedder, self.keeper, self.store.ledger)

    def found(self, readers: Readers) -> set[str]:
        """The own ids of all that is found by the word that every document says."""
        deadline = Deadline.after(30)
        vector = self.embedder.embed_queries(["salaries"], deadline)[0]
        asked = [
            IndexQuery(text="salaries", vector=vector, alpha=alpha, size=50)
            for alpha in (0.0, 0.5, 1.0)
        ]
        rankings = self.index.find(asked, readers, deadline).rankings
        ids = {hit.chunk.document_id for ranking in rankings for hit in ranking}
        return {one.removeprefix("hub:") for one in ids}


@pytest.fixture
def repository(tmp_path: Path) -> Repo:
    private = Repo(id=2, name="acme/board", visibility="private", collaborators=["ann", "bob"])
    private.has_wiki = True
    private.put(Issue(number=1, title="Rise", body="The salaries rise."))
    private.discuss(Discussion(number=2, title="How much?", body="Of salaries."))
    of_git(tmp_path, "acme/board.wiki").commit(Write("Home.md", b"All on salaries."))
    of_git(tmp_path, "acme/board").commit(Write("plan.md", b"A plan of salaries."))
    return private


@pytest.fixture
def office(tmp_path: Path, repository: Repo) -> Iterator[Office]:
    service = GitHub(repository, folder=tmp_path)
    service.profiles = {"ann": "ann@example.com", "bob": "bob@example.com"}
    store, embedder = store_with(tmp_path, "hub"), Counting()
    folder = tmp_path / "index"
    with closing(store.database), served(service) as place:
        keeper = open_keeper(folder, embedder.identity)
        yield Office(store, place, embedder, open_index(folder, embedder.identity), keeper)


def test_a_removed_collaborator_finds_nothing_of_a_private_repository(
    office: Office, repository: Repo
) -> None:
    source = sources.find(office.database, "hub")
    connector, pipeline = office.connector(source), office.pipeline(source)
    for _ in sync(office.database, source, connector, pipeline):
        pass
    assert office.found(ANN) == office.found(BOB) == ALL
    assert office.found(Readers.of()) == set()
    embedded = list(office.embedder.passages)
    assert embedded

    repository.collaborators.remove("bob")
    assert office.found(BOB) == ALL
    schedule.ask(office.database, "hub", "permissions")
    assert Engine(lambda: office).light_due("hub")
    written = time.monotonic()
    assert office.found(BOB) == set()
    assert time.monotonic() - written < 1.0
    assert office.found(ANN) == ALL
    run = runs.latest(office.database)["hub"]
    assert (run.kind, run.state) == ("permissions", "done")
    assert office.embedder.passages == embedded
