"""A home changed to another model, in this process, up to where a crash may strike."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from backend.access.readers import add_own_files
from backend.cli import reindex as commands
from backend.cli.doctor import check_index
from backend.composition.index import IndexEngine
from backend.container import Container
from backend.files import file_keeper
from backend.files.file_keeper import FileKeeper
from backend.files.file_service import FileService
from backend.files.file_types import UploadedFile
from backend.schemas.index import ReindexStatus
from backend.schemas.system import DoctorCheck
from backend.settings import Settings
from backend.store.database import Database
from backend.store.schema.user_file_tables import waiting_uploads
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from backend.sync.maintenance_lock import lock_index
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Filters
from indexing.index.versions import IndexVersion, IndexVersionReplacedError
from indexing.ingestion.progress import Report
from indexing.local.database import connect_writer, transaction, write_meta
from indexing.rebuild.events import RateLimit, RebuildEvent, RebuildResult
from indexing.rebuild.reindex import Reindexer
from indexing.text.analysis import ENGLISH
from tests.support.conversations import OWNER
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.index_engines import PUBLIC, soon
from tests.support.languages import PASSAGES
from tests.support.server_processes import wait_for
from tests.support.store import lose_texts


class Crash(Exception):
    """The process ends here."""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@dataclass
class Desk:
    """A home with a folder of notes, synced with the model `first`."""

    path: Path
    url: str

    def container(self, tokens: int = 512) -> Container:
        """Another process: nothing is open yet."""
        return Container(
            Settings(home=self.path / "state", embedding_url=self.url, embedding_tokens=tokens)
        )

    def note(self, name: str, text: str) -> None:
        (self.path / "notes").mkdir(exist_ok=True)
        (self.path / "notes" / f"{name}.md").write_text(f"# {name}\n\n{text}\n")

    def sync(self, container: Container | None = None) -> Report:
        container = container or self.container()
        source = sources.find(container.database, "desk")
        steps = sync(
            container.database,
            source,
            container.sources.connector(source),
            container.sources.pipeline(source),
        )
        *_, report = steps
        assert isinstance(report, Report)
        return report


@pytest.fixture
def desk(tmp_path: Path, server: EmbeddingServer) -> Desk:
    desk = Desk(tmp_path, server.url)
    desk.note("long", "The manager approves all travel beyond the border. " * 30)
    desk.note("short", "Leave is 25 days.")
    first = desk.container().with_model("first")
    sources.add(first.database, "desk", "folder", {"path": str(tmp_path / "notes")})
    desk.sync(first)
    return desk


def last(steps: Iterator[RebuildEvent]) -> RebuildResult:
    *_, rebuilt = steps
    assert isinstance(rebuilt, RebuildResult)
    return rebuilt


def documents(container: Container) -> int:
    return sum(container.engine.index.facets(Filters(), PUBLIC, soon()).sources.values())


def _check_index(container: Container) -> DoctorCheck:
    return check_index(container.database, container.engine)


def _get_status(container: Container) -> ReindexStatus:
    return commands.get_status(container.engine, container.sources.ledger)


def test_a_home_is_changed_to_another_model(desk: Desk) -> None:
    before = desk.container()
    assert documents(before) == 2
    done = last(commands.change_model(desk.container(tokens=64), "second", RateLimit()))
    assert (done.documents, done.missing) == (2, ())
    after = desk.container(tokens=64)
    assert after.embedding.name == "second"
    assert documents(after) == 2
    with pytest.raises(IndexVersionReplacedError, match="second"):
        documents(before)
    report = desk.sync(after)
    assert (report.embedded, report.restored) == (0, 0)


def test_a_process_that_was_opened_before_cannot_sync_into_what_is_gone(desk: Desk) -> None:
    before = desk.container()
    _ = before.engine.writer
    last(commands.change_model(desk.container(), "second", RateLimit()))
    desk.note("new", "A note that came late.")
    with pytest.raises(IndexVersionReplacedError):
        desk.sync(before)
    assert desk.sync().documents == 1
    assert documents(desk.container()) == 3


def test_a_file_that_is_uploaded_during_the_switch_is_in_the_new_index(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_keeper, "FIRST_PAUSE", 0.01)
    database = desk.container().database
    keeper = FileKeeper(lambda: desk.container().sources.file_index)
    files = FileService(database, OWNER, keeper)
    reindexer, opened = commands._activate, list[str]()

    def upload_and_switch(shared: Database, engine: IndexEngine, version: IndexVersion) -> None:
        """The new index has been compared with the ledger for the last time."""
        file = files.upload(UploadedFile("plan.md", b"# Plan\n\nThe office moves to Nantmoor.\n"))
        wait_for(lambda: _tries(database) > 1 or files.get(file.id).status == "ready")
        opened.append(file.id)
        reindexer(shared, engine, version)

    monkeypatch.setattr(commands, "_activate", upload_and_switch)
    last(commands.change_model(desk.container(), "second", RateLimit()))
    (file_id,) = opened
    wait_for(lambda: files.get(file_id).status == "ready")
    after = desk.container()
    assert after.embedding.name == "second"
    place, readers = ChunkRange(files.get(file_id).document_id, 0, 1), add_own_files(PUBLIC, OWNER)
    (found,) = after.engine.index.chunks([place], readers, soon())
    assert [chunk.title for chunk in found] == ["plan.md"]
    keeper.stop(30)


def _tries(database: Database) -> int:
    with database.reading() as connection:
        return connection.scalar(select(waiting_uploads.c.tries)) or 0


def test_a_crash_after_the_switch_costs_nothing_but_the_counts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, server: EmbeddingServer
) -> None:
    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Reindexer, "update_chunk_counts", crash)
        with pytest.raises(Crash):
            list(commands.change_model(desk.container(tokens=64), "second", RateLimit()))
    assert desk.container().embedding.name == "second"
    asked = len(server.requests)
    again = last(commands.change_model(desk.container(tokens=64), "second", RateLimit()))
    assert again.documents == 0
    report = desk.sync(desk.container(tokens=64))
    assert (report.restored, report.embedded) == (0, 0)
    passages = [each["input"] for each in server.requests[asked:] if each["input"] != ["dimension"]]
    assert passages == []


def test_a_sync_after_such_a_crash_cuts_and_counts_and_embeds_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Reindexer, "update_chunk_counts", lambda *_: None)
        last(commands.change_model(desk.container(tokens=64), "second", RateLimit()))
    for _ in range(2):
        report = desk.sync(desk.container(tokens=64))
        assert (report.restored, report.embedded) == (0, 0)
    entries = {each.id: each.chunks for each in desk.container().sources.ledger.scan("desk", "")}
    held = {each.id: each.chunks for each in desk.container(tokens=64).engine.writer.scan()}
    assert entries == held
    assert held["desk:long.md"] > 1


def test_the_same_model_is_built_anew_only_when_that_is_asked_for(desk: Desk) -> None:
    assert last(commands.change_model(desk.container(), "first", RateLimit())).documents == 0
    before = desk.container()
    assert documents(before) == 2
    assert last(commands.rebuild_index(desk.container(), RateLimit())).documents == 2
    # What is open goes on with the new version.
    assert documents(before) == 2
    assert desk.sync(before).embedded == 0


def test_words_are_made_again_without_embedding(desk: Desk, server: EmbeddingServer) -> None:
    desk.note("german", PASSAGES["de"])
    desk.sync()
    assert last(commands.renew_words(desk.container(), RateLimit())).copied == 0
    (file,) = (desk.path / "state" / "index").glob("*/index.db")
    with closing(connect_writer(file.parent)) as connection, transaction(connection):
        write_meta(connection, "analysis", ENGLISH.fingerprint)
    assert "quarry reindex --words" in (_check_index(desk.container()).advice or "")
    desk.note("short", "Leave is 26 days.")
    before, asked = desk.container(), len(server.requests)
    done = last(commands.renew_words(desk.container(), RateLimit()))
    assert (done.copied, done.documents, done.missing) == (3, 0, ())
    passages = [each["input"] for each in server.requests[asked:] if each["input"] != ["dimension"]]
    assert passages == []
    assert _check_index(desk.container()).advice is None
    assert desk.sync(before).embedded == 1
    assert last(commands.renew_words(desk.container(), RateLimit())).copied == 0


def test_a_damaged_index_is_built_anew(desk: Desk) -> None:
    (file,) = (desk.path / "state" / "index").glob("*/index.db")
    for each in file.parent.glob("index.db*"):
        each.write_bytes(b"no database at all, but long enough to be taken for one" * 9)
    with pytest.raises(ActionRequiredError, match="damaged"):
        documents(desk.container())
    assert last(commands.rebuild_index(desk.container(), RateLimit())).documents == 2
    assert documents(desk.container()) == 2


@pytest.mark.soak("slow")
def test_what_was_begun_goes_on_by_itself_and_can_be_given_up(desk: Desk) -> None:
    with pytest.raises(ActionRequiredError, match="quarry reindex --model MODEL"):
        list(commands.continue_build(desk.container(), RateLimit()))
    assert commands.abandon_build(desk.container().engine).abandoned is None
    for end in ("abandon", "go on"):
        steps = commands.change_model(desk.container(), "second", RateLimit())
        next(steps)
        assert _get_status(desk.container()).running
        with pytest.raises(TemporarilyUnavailableError, match="Another process"):
            commands.abandon_build(desk.container().engine)
        steps.close()  # type: ignore[attr-defined]
        found = _get_status(desk.container())
        assert found.active is not None
        assert found.building is not None
        assert (found.active.model, found.building.model) == ("first", "second")
        assert (found.running, found.documents, found.total) == (False, 0, 2)
        with pytest.raises(ActionRequiredError, match=r"model second .* is being built"):
            list(commands.change_model(desk.container(), "third", RateLimit()))
        if end == "abandon":
            given_up = commands.abandon_build(desk.container().engine).abandoned
            assert given_up is not None
            assert given_up.model == "second"
            assert _get_status(desk.container()).building is None
        else:
            assert last(commands.continue_build(desk.container(), RateLimit())).documents == 2
    assert desk.container().embedding.name == "second"


def test_a_second_process_is_refused(desk: Desk) -> None:
    with lock_index(desk.container().home):
        for steps in (
            commands.change_model(desk.container(), "second", RateLimit()),
            commands.rebuild_index(desk.container(), RateLimit()),
        ):
            with pytest.raises(TemporarilyUnavailableError, match="--status"):
                list(steps)


def test_a_setting_that_names_the_former_model_is_pointed_out(desk: Desk) -> None:
    done = last(commands.change_model(desk.container(), "second", RateLimit()))
    assert commands.to_report(desk.container().engine, done).advice is None
    assert commands.to_report(desk.container().with_model("second").engine, done).advice is None
    advice = commands.to_report(desk.container().with_model("first").engine, done).advice
    assert advice is not None
    assert "QUARRY_EMBEDDING_MODEL is set to first" in advice


def test_what_could_not_be_built_is_named_and_read_again_by_the_next_sync(desk: Desk) -> None:
    lose_texts(desk.container().database, "desk:short.md")
    assert desk.container().sources.ledger.document("desk:long.md") is not None
    done = last(commands.change_model(desk.container(), "second", RateLimit()))
    assert [each.document_id for each in done.missing] == ["desk:short.md"]
    assert documents(desk.container()) == 1
    assert desk.sync().documents == 1
    assert documents(desk.container()) == 2
