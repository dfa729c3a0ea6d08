"""Opening, upgrading and sharing the database."""

import logging
import multiprocessing
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, StatementError

from backend.access.api_tokens import ApiTokenService, TokenScope, find_valid_token
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.store import audit
from backend.store import database as module
from backend.store.chat import projects
from backend.store.database import LATEST, Database, create_engine_for, open_database, sqlite_url
from backend.store.documents.ledger import StoredLedger
from backend.store.owner import ConversationOwner
from backend.store.schema.metadata import metadata
from backend.store.sync import sources
from connectors.connector import Checkpoint
from connectors.errors import ActionRequiredError, ConflictError, TemporarilyUnavailableError
from tests.support.accounts import add_person
from tests.support.databases import Databases, make_sqlite_engine

MIGRATIONS = Path(module.__file__).parent / "migrations"
ADD_A = (
    "INSERT INTO sources (id, name, kind, settings, created_at)"
    " VALUES (1, 'a', 'folder', '{}', '2026-01-01 00:00:00')"
)


def url(folder: Path) -> str:
    return sqlite_url(folder / "quarry.db")


@pytest.fixture(autouse=True)
def _made_by_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not copied, as in other tests."""
    monkeypatch.setattr(module, "_sqlite", make_sqlite_engine)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a database that has no tables yet."""
    if request.param == "sqlite":
        yield url(tmp_path)
    else:
        databases: Databases = request.getfixturevalue("postgresql")
        with databases.empty() as address:
            yield address


def test_a_database_is_made_where_there_is_none(tmp_path: Path) -> None:
    database = open_database(sqlite_url(tmp_path / "new" / "home" / "quarry.db"))
    assert sources.list_sources(database) == []


def test_the_migrations_lead_to_the_tables(database: Database) -> None:
    with database.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


FIRST = (
    "INSERT INTO sources (id, name, kind, settings, checkpoint, created_at)"
    """ VALUES (1, 'wiki', 'folder', '{"path": "/srv/規程"}', '7', '2026-01-01 00:00:00+00:00')""",
    "INSERT INTO documents (id, source_id, title, link, media_type, version, content_hash, kept,"
    " generation, chunks, indexed_at) VALUES ('wiki:a', 1, 'Leave', 'https://wiki.test/a',"
    " 'text/plain', '3', 'h1', 'k1', 4, 2, '2026-01-02 00:00:00+00:00')",
    "INSERT INTO document_readers VALUES ('wiki:a', 'group:hr')",
    "INSERT INTO failures (document_id, source_id, item, reason, tries, first_at, last_at)"
    " VALUES ('wiki:b', 1, 'b.pdf', 'it is locked', 3, '2026-01-02 00:00:00+00:00',"
    " '2026-01-03 00:00:00+00:00')",
    "INSERT INTO runs (id, source_id, kind, state, stage, counts, host, process, process_started,"
    """ started_at, renewed_at) VALUES (5, 1, 'sync', 'done', 'indexing', '{"documents": 1}',"""
    " 'here', 7, '1', '2026-01-02 00:00:00+00:00', '2026-01-02 00:00:00+00:00')",
)
"""What the tables of the first migration may hold."""
GONE = {("kept", "'k1'")}
"""Columns that there are no more."""


def test_what_the_first_migration_held_outlives_those_that_followed(empty_url: str) -> None:
    with closing(Database(create_engine_for(empty_url))) as before:
        with before.writing() as connection:
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", str(MIGRATIONS))
            command.upgrade(config, "0001")
            for statement in FIRST:
                connection.execute(text(statement))
        tables = ("sources", "documents", "document_readers", "failures", "runs")
        held = {table: rows(before, table) for table in tables}
        with closing(open_database(empty_url)) as after:
            for table, (row,) in held.items():
                (kept,) = rows(after, table)
                assert row.items() - GONE <= kept.items()
            (source,) = sources.list_sources(after)
            # Its text was in a file: the next run reads the document again.
            assert list(StoredLedger(after).lost_contents("wiki")) == ["wiki:a"]
    assert (source.name, source.settings) == ("wiki", {"path": "/srv/規程"})
    assert source.checkpoint == Checkpoint("7")
    assert source.credential is None


def test_a_migration_is_logged_and_the_making_of_a_database_is_not(
    empty_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quarry")
    with closing(open_database(empty_url)), closing(open_database(empty_url)):
        pass
    assert caplog.messages == []
    with closing(Database(create_engine_for(empty_url))) as database:
        with database.writing() as connection:
            connection.execute(text("ALTER TABLE document_sets DROP COLUMN left_to"))
            connection.execute(text("UPDATE alembic_version SET version_num = '0049'"))
        with closing(open_database(empty_url)):
            pass
    assert caplog.messages == [f"The database was migrated from version 0049 to {LATEST}."]


def test_tokens_of_before_are_of_no_person_and_stay_valid(empty_url: str) -> None:
    with closing(Database(create_engine_for(empty_url))) as before:
        with before.writing() as connection:
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", str(MIGRATIONS))
            command.upgrade(config, "0012")
            connection.execute(
                text(
                    "INSERT INTO api_tokens (name, digest, scopes, created_at, expires_at) VALUES"
                    """ ('ci', :digest, '["search"]', '2026-11-01 00:00:00+00:00', '2099-01-01 00:00:00+00:00')"""
                ),
                {"digest": digest("qry_former")},
            )
            connection.execute(
                text(
                    "INSERT INTO audit (at, actor, action, subject, detail) VALUES"
                    " ('2026-11-01 00:00:00+00:00', 'owner', 'create_token', 'token:ci', '{}')"
                )
            )
        with closing(open_database(empty_url)) as after:
            found = find_valid_token(after, "qry_former")
            assert found
            assert (found[0].name, list(found[0].scopes), found[1]) == ("ci", ["search"], None)
            (entry,) = audit.list_entries(after)
            assert (entry.actor, entry.address) == ("owner", None)
            # A name is taken once among the service tokens, and once by each person.
            service = ApiTokenService(after)
            with pytest.raises(ConflictError):
                service.create("ci", [TokenScope.SEARCH], timedelta(days=7))
            for name in ("ann@example.com", "bob@example.com"):
                own = ApiTokenService(after, owner=add_person(after, name, Role.ADMIN))
                own.create("ci", [TokenScope.SEARCH], timedelta(days=7))
                with pytest.raises(ConflictError):
                    own.create("ci", [TokenScope.SEARCH], timedelta(days=7))


def test_members_of_projects_of_before_stay_in_them(empty_url: str) -> None:
    with closing(Database(create_engine_for(empty_url))) as before:
        with before.writing() as connection:
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", str(MIGRATIONS))
            command.upgrade(config, "0032")
            for statement in (
                "INSERT INTO people (id, email, name, role, created_at)"
                " VALUES (7, 'ann@example.com', 'Ann', 'admin', '2026-11-01 00:00:00+00:00')",
                "INSERT INTO projects (id, name, instructions, created_at)"
                " VALUES ('depot', 'Depot', '', '2026-11-01 00:00:00+00:00')",
                "INSERT INTO project_members (project_id, person_id) VALUES ('depot', 7)",
            ):
                connection.execute(text(statement))
        with closing(open_database(empty_url)) as after:
            (member,) = projects.list_members(after, "depot")
            assert (member.email, member.person_id) == ("ann@example.com", 7)
            (joined,) = projects.list_of(after, ConversationOwner(7))
            assert joined.id == "depot"


def test_answers_of_before_are_found_by_what_they_say(empty_url: str) -> None:
    said = ("Die Übergabe ist [[1]](https://wiki.test/torque).", "", "not yet ended")
    with closing(Database(create_engine_for(empty_url))) as before:
        with before.writing() as connection:
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", str(MIGRATIONS))
            command.upgrade(config, "0045")
            connection.execute(
                text(
                    "INSERT INTO conversations (id, title, title_by, folded_title, created_at, updated_at) VALUES"
                    " ('c', 'T', 'words', 't', '2026-11-01 00:00:00+00:00', '2026-11-01 00:00:00+00:00')"
                )
            )
            for number, (answer, status) in enumerate(
                zip(said, ("finished", "failed", "running"), strict=True), start=1
            ):
                connection.execute(
                    text(
                        "INSERT INTO messages (id, conversation_id, role, text, status, created_at, document_ids)"
                        " VALUES (:id, 'c', 'assistant', :text, :status, '2026-11-01 00:00:00+00:00', '[]')"
                    ),
                    {"id": number, "text": answer, "status": status},
                )
        with closing(open_database(empty_url)) as after:
            (found,) = rows(after, "answer_texts")
    folded = "'die ubergabe ist [[1]].'"
    assert found == {"message_id": "1", "conversation_id": "'c'", "folded_text": folded}


def rows(database: Database, table: str) -> list[dict[str, object]]:
    with database.reading() as connection:
        found = connection.execute(text(f"SELECT * FROM {table}")).mappings()
        return [{name: repr(value) for name, value in row.items()} for row in found]


def test_the_latest_migration_is_the_one_that_the_program_knows() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [LATEST]


def test_a_database_in_use_is_in_wal_mode_and_checks_references(tmp_path: Path) -> None:
    database = open_database(url(tmp_path))
    with database.reading() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
    with pytest.raises(IntegrityError), database.writing() as connection:
        connection.execute(text("INSERT INTO document_readers VALUES ('nowhere', 'public')"))


def test_opening_an_existing_database_does_not_load_the_migrator(database_url: str) -> None:
    open_database(database_url).close()
    code = (
        "import sys; from backend.store.database import open_database;"
        f" open_database({database_url!r}).close(); print('alembic' in sys.modules)"
    )
    root = Path(module.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def _open(address: str, start: "multiprocessing.synchronize.Barrier") -> None:
    start.wait()
    with closing(open_database(address)) as database:
        sources.list_sources(database)


@pytest.mark.soak("slow")
def test_processes_that_open_an_empty_database_at_once_all_succeed(empty_url: str) -> None:
    spawning = multiprocessing.get_context("spawn")
    start = spawning.Barrier(4)
    processes = [
        spawning.Process(target=_open, args=(empty_url, start), daemon=True) for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]


def test_a_newer_database_is_left_alone(database: Database, database_url: str) -> None:
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ActionRequiredError, match=r"newer Quarry.*9999"):
        open_database(database_url)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "quarry.db"
    path.write_bytes(b"my novel, chapter one. " * 1000)
    with pytest.raises(ActionRequiredError, match="damaged"):
        open_database(url(tmp_path))
    assert path.read_bytes().startswith(b"my novel")


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "quarry.db").mkdir()
    with pytest.raises(ActionRequiredError, match="cannot be used"):
        open_database(url(tmp_path))


def test_a_database_that_readers_and_a_writer_cannot_share_is_refused() -> None:
    with pytest.raises(ActionRequiredError, match="local disk"):
        open_database("sqlite://")


def test_a_block_that_fails_leaves_nothing(database: Database) -> None:
    def add_and_fail() -> None:
        with database.writing() as connection:
            connection.execute(text(ADD_A))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add_and_fail()
    assert sources.list_sources(database) == []


def test_readers_do_not_wait_for_a_writer_and_see_nothing_half(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(text(ADD_A))
        assert sources.list_sources(database) == []
    assert [source.name for source in sources.list_sources(database)] == ["a"]


def test_writers_in_threads_take_turns(database: Database) -> None:
    threads = [
        threading.Thread(target=sources.add, args=(database, f"source-{number}", "folder", {}))
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sources.list_sources(database)) == 12


def test_a_database_that_another_holds_too_long_is_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_database(url(tmp_path)).close()
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    database = open_database(url(tmp_path))
    other = sqlite3.connect(tmp_path / "quarry.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TemporarilyUnavailableError, match="too long"):
        sources.add(database, "desk", "folder", {})
    other.execute("ROLLBACK")
    other.close()
    sources.add(database, "desk", "folder", {})


def test_a_time_is_kept_in_any_zone_and_refused_without_one(database: Database) -> None:
    sources.add(database, "desk", "folder", {})
    at = datetime(2026, 3, 31, 9, tzinfo=timezone(timedelta(hours=5)))
    sources.set_paused(database, "desk", at)
    assert sources.find(database, "desk").paused_at == at
    with pytest.raises(StatementError, match="a time without a time zone: 2026-03-31 09:00:00"):
        sources.set_paused(database, "desk", at.replace(tzinfo=None))
