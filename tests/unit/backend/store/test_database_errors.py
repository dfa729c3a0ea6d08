"""The failures of PostgreSQL, and the errors that they become."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import func, make_url, select, text, update
from sqlalchemy.exc import InternalError

from backend.store import database as stores
from backend.store.database import Database, exclusive, open_database
from backend.store.documents import documents
from backend.store.schema.tables import sources as rows
from backend.store.sync import failures, sources
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.ledger import Failed
from tests.support.databases import Databases, PostgreSql, Server
from tests.support.store import document, store_at


@pytest.fixture
def url(postgresql: Databases) -> Iterator[str]:
    with postgresql.new() as url:
        yield url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as database:
        yield database


def changed(url: str, **parts: object) -> str:
    """The same address with another user, password, host, port or database."""
    made = make_url(url).set(**parts)  # type: ignore[arg-type]
    return made.render_as_string(hide_password=False)


# Who is let in


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"password": "wrong"}, "password authentication failed"),
        ({"username": "nobody"}, "authentication failed"),
        ({"password": ""}, "no password supplied"),
        ({"database": "nowhere"}, 'database "nowhere" does not exist'),
    ],
)
def test_who_is_not_let_in_is_shown_what_to_correct(
    url: str, parts: dict[str, object], said: str
) -> None:
    with pytest.raises(ActionRequiredError, match=rf"{said}.*QUARRY_DATABASE_URL"):
        open_database(changed(url, **parts))


def test_a_password_is_shown_nowhere(url: str) -> None:
    with pytest.raises(ActionRequiredError) as raised:
        open_database(changed(url, password="hunter2", database="nowhere"))
    seen: BaseException | None = raised.value
    while seen:
        assert "hunter2" not in f"{seen} {seen!r}"
        seen = seen.__cause__ or seen.__context__
    with closing(open_database(url)) as database:
        assert str(make_url(url).password) not in repr(database)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_usual_form_of_an_address_will_do(url: str, scheme: str) -> None:
    _, _, rest = url.partition("://")
    with closing(open_database(f"{scheme}://{rest}?application_name=mine")) as database:
        assert sources.list_sources(database) == []
        with database.reading() as connection:
            assert connection.scalar(text("SHOW application_name")) == "mine"


@pytest.mark.parametrize("address", ["mysql://u:hunter2@h/d", "quarry.db", "", "http://x:hunter2"])
def test_another_kind_of_database_is_refused(address: str) -> None:
    with pytest.raises(ActionRequiredError, match="postgresql://USER") as raised:
        open_database(address)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_user_that_may_not_make_tables_is_shown_what_is_missing(
    database: Database, postgresql: Databases
) -> None:
    with database.writing() as connection:
        connection.execute(text("DROP ROLE IF EXISTS guest"))
        connection.execute(text("CREATE ROLE guest LOGIN PASSWORD 'guest'"))
    try:
        with (
            postgresql.empty() as empty,
            pytest.raises(ActionRequiredError, match=r"permission denied.*OWNER TO"),
        ):
            open_database(changed(empty, username="guest", password="guest"))
    finally:
        with database.writing() as connection:
            connection.execute(text("DROP ROLE guest"))


# Who is away, and comes back


@pytest.mark.soak("slow")
def test_a_server_that_is_away_is_for_later_and_found_again_when_it_is_back() -> None:
    with Server(PostgreSql) as server, closing(open_database(server.url)) as database:
        sources.add(database, "desk", "folder", {})
        server.stop()
        for _ in range(2):
            with pytest.raises(
                TemporarilyUnavailableError, match=r"does not answer: .*refused"
            ) as raised:
                sources.list_sources(database)
        assert 0 < raised.value.retry_after.total_seconds() <= 60
        with pytest.raises(TemporarilyUnavailableError, match="does not answer"):
            open_database(server.url)
        server.start()
        assert [source.name for source in sources.list_sources(database)] == ["desk"]
        server.kill()
        with pytest.raises(TemporarilyUnavailableError, match="does not answer"):
            sources.add(database, "web", "folder", {})
        server.start()
        sources.add(database, "web", "folder", {})
        assert [source.name for source in sources.list_sources(database)] == ["desk", "web"]


def test_a_connection_that_is_cut_in_a_transaction_leaves_nothing_of_it(database: Database) -> None:
    def cut() -> None:
        with database.writing() as connection:
            connection.execute(
                rows.insert().values(name="a", kind="folder", settings={}, created_at=func.now())
            )
            with database.reading() as other:
                mine = connection.scalar(select(func.pg_backend_pid()))
                other.execute(select(func.pg_terminate_backend(mine)))
            connection.execute(text("SELECT 1"))

    with pytest.raises(TemporarilyUnavailableError, match="terminating connection"):
        cut()
    assert sources.list_sources(database) == []


# Who waits for whom


def test_a_lock_that_is_held_too_long_is_for_later(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "PATIENCE_SECONDS", 0.1)
    with closing(open_database(url)) as database:
        sources.add(database, "desk", "folder", {})
        with database.writing() as connection:
            exclusive(connection)
            with pytest.raises(TemporarilyUnavailableError, match="held the database for too long"):
                sources.edit(database, "desk", {"path": "/"})
        assert sources.edit(database, "desk", {"path": "/"}).settings == {"path": "/"}


def test_changes_that_wait_for_each_other_are_parted_and_one_is_for_later(
    database: Database,
) -> None:
    for name in ("a", "b"):
        sources.add(database, name, "folder", {})
    both, outcomes = threading.Barrier(2), []

    def change(first: str, second: str) -> None:
        try:
            with database.writing() as connection:
                for name in (first, second):
                    statement = update(rows).where(rows.c.name == name)
                    connection.execute(statement.values(checkpoint=first))
                    if name == first:
                        both.wait()
            outcomes.append("done")
        except TemporarilyUnavailableError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=change, args=names) for names in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 2
    assert "done" in outcomes
    assert any("Two transactions conflicted" in outcome for outcome in outcomes)
    assert len({source.checkpoint for source in sources.list_sources(database)}) == 1


def test_a_transaction_whose_process_stands_still_is_ended(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_IDLE_SECONDS", 0.2)

    def stand_still(database: Database) -> None:
        with database.writing() as connection:
            exclusive(connection)
            time.sleep(1)
            connection.execute(text("SELECT 1"))

    with closing(open_database(url)) as database:
        with pytest.raises(TemporarilyUnavailableError, match="idle-in-transaction"):
            stand_still(database)
        sources.add(database, "desk", "folder", {})


def test_runs_of_other_sources_begin_while_documents_are_changed(database: Database) -> None:
    """A row that refers to a source does not wait for `exclusive`."""
    sources.add(database, "desk", "folder", {})
    (desk,) = sources.list_sources(database)
    entry = (
        "INSERT INTO failures (document_id, source_id, item, reason, tries, first_at, last_at)"
        f" VALUES ('desk:a', {desk.id}, 'a', 'no', 1, now(), now())"
    )
    with database.writing() as first:
        exclusive(first)
        with database.writing() as second:
            second.execute(text("SET LOCAL lock_timeout = '2s'"))
            second.execute(text(entry))
    assert failures.count_by_source(database) == {"desk": 1}


# What is read and kept


def test_a_reader_sees_one_state_and_cannot_write(database: Database) -> None:
    with database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(rows)) == 0
        sources.add(database, "desk", "folder", {})
        assert connection.scalar(select(func.count()).select_from(rows)) == 0
    with pytest.raises(InternalError, match="read-only"), database.reading() as connection:
        connection.execute(update(rows).values(checkpoint="1"))


def test_names_go_by_code_points_whatever_the_database_s_language(database: Database) -> None:
    for name in ("b", "a", "B", "é", "Z", "規程"):
        sources.add(database, name, "folder", {})
    with database.reading() as connection:
        by_language = list(connection.scalars(select(rows.c.name).order_by(rows.c.name)))
    assert by_language != sorted(by_language), "the database of a test goes by English"
    assert [source.name for source in sources.list_sources(database)] == sorted(by_language)


def test_a_nul_in_a_text_stops_nothing(url: str) -> None:
    with store_at(url, "desk") as store:
        store.hold(document("desk:a", version="1\0"))
        store.ledger.save(
            [
                Failed(
                    source="desk",
                    document_id="desk:b",
                    item="b\0.pdf",
                    reason="odd",
                    link=None,
                )
            ]
        )
        assert [each.id for each in documents.list_documents(store.database)] == ["desk:a"]
        assert store.ledger.versions(["desk:a"]) == {"desk:a": "1\N{REPLACEMENT CHARACTER}"}
        (failure,) = failures.list_failures(store.database)
        assert failure.item == "b\N{REPLACEMENT CHARACTER}.pdf"
