"""Who was removed from a private repository of GitHub finds nothing of it any more, at once."""

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from backend.access.readers import resolve_readers
from backend.store.sync import runs, schedule, sources
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from connectors.access import Readers
from tests.support.office import Office
from tests.support.repository import Write
from tests.support.services.github import GitHub
from tests.support.services.github_place import create_repository, serve_github
from tests.support.services.github_state import Discussion, Issue, Repo
from tests.support.store import store_with

pytestmark = pytest.mark.smoke

ANN = Readers.of("user:ann@example.com")
BOB = Readers.of("user:bob@example.com")
PARTS = ("issues", "discussions", "wiki", "files")
ALL = {"2/1", "2/discussions/2", "2/wiki/Home.md", "2/files/plan.md"}


def found(office: Office, readers: Readers) -> set[str]:
    """The own ids of all that is found by the word that every document says."""
    held = resolve_readers(office.database, readers)
    return {one.document_id.removeprefix("hub:") for one in office.chunks("salaries", held)}


@pytest.fixture
def repository(tmp_path: Path) -> Repo:
    private = Repo(id=2, name="acme/board", visibility="private", collaborators=["ann", "bob"])
    private.has_wiki = True
    private.put(Issue(number=1, title="Rise", body="The salaries rise."))
    private.add_discussions(Discussion(number=2, title="How much?", body="Of salaries."))
    create_repository(tmp_path, "acme/board.wiki").commit(Write("Home.md", b"All on salaries."))
    create_repository(tmp_path, "acme/board").commit(Write("plan.md", b"A plan of salaries."))
    return private


@pytest.fixture
def office(tmp_path: Path, repository: Repo) -> Iterator[Office]:
    service = GitHub(repository, folder=tmp_path)
    service.profiles = {"ann": "ann@example.com", "bob": "bob@example.com"}
    store = store_with(tmp_path, "hub")
    with closing(store.database), serve_github(service) as place:
        connect = partial(place.connect, "acme/board", contents=PARTS)
        yield Office(store, tmp_path / "index", connect)


def test_a_removed_collaborator_finds_nothing_of_a_private_repository(
    office: Office, repository: Repo
) -> None:
    source = sources.find(office.database, "hub")
    connector, pipeline = office.connector(source), office.pipeline(source)
    for _ in sync(office.database, source, connector, pipeline):
        pass
    assert found(office, ANN) == found(office, BOB) == ALL
    assert found(office, Readers.of()) == set()
    embedded = list(office.embedder.passages)
    assert embedded

    repository.collaborators.remove("bob")
    assert found(office, BOB) == ALL
    schedule.request_run(office.database, "hub", "permissions")
    assert Engine(lambda: office).light_due("hub")
    written = time.process_time()
    assert found(office, BOB) == set()
    assert time.process_time() - written < 1.0
    assert found(office, ANN) == ALL
    run = runs.latest(office.database)["hub"]
    assert (run.kind, run.state) == ("permissions", "done")
    assert office.embedder.passages == embedded
