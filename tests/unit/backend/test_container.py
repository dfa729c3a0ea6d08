"""Which embedder a home is opened with, and what is known of it before its database is opened."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from backend.access.roles import Role
from backend.access.source_accounts import OwnSourceAccounts
from backend.container import Container, find_held_beyond_tokens
from backend.settings import DEFAULT_MODEL, Settings
from backend.store.accounts import groups
from backend.store.audit import OWNER
from backend.store.schema import tables
from backend.web_search.browser.browser_reader import BrowserReader
from connectors.access import Access, Readers
from connectors.errors import ActionRequiredError, DamagedDataError
from indexing.index.versions import IndexVersionReplacedError
from tests.support.accounts import add_person
from tests.support.chunks import document, vectors
from tests.support.databases import sqlite_in
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.groups import save_conjunctions, save_groups
from tests.support.store import document as stored_document
from tests.support.store import store_at, store_with


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUARRY_EMBEDDING_MODEL", raising=False)
    monkeypatch.delenv("QUARRY_EMBEDDING_URL", raising=False)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


def open_container(home: Path, url: str | None = None, model: str | None = None) -> Container:
    chosen = {} if model is None else {"embedding_model": model}
    return Container(Settings(home=home, embedding_url=url, **chosen))  # type: ignore[arg-type]


def test_before_there_is_an_index_the_usual_model_is_taken(tmp_path: Path) -> None:
    assert open_container(tmp_path).embedding.name == DEFAULT_MODEL
    assert open_container(tmp_path, model="mine").embedding.name == "mine"


def test_where_none_is_set_the_model_of_the_index_is_taken(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    writer = open_container(tmp_path, server.url, "first").engine.writer
    writer.write([document("a", "apples", vectors_of=vectors(["a"], 64))])
    opened = open_container(tmp_path, server.url)
    assert opened.embedding.name == "first"
    assert [each.id for each in opened.engine.writer.scan()] == ["a"]


def test_a_model_that_is_set_and_is_another_is_refused_with_the_way_out(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    _ = open_container(tmp_path, server.url, "first").engine.writer
    other = open_container(tmp_path, server.url, "second")
    for open_it in (lambda: other.engine.index, lambda: other.engine.writer):
        with pytest.raises(
            ActionRequiredError, match=r"the model first .* the model second"
        ) as raised:
            open_it()
        assert "quarry reindex --model second" in str(raised.value)
        assert "QUARRY_EMBEDDING_MODEL=first" in str(raised.value)


def test_a_switch_between_choosing_and_opening_is_no_wrong_setting(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    _ = open_container(tmp_path, server.url, "first").engine.writer
    late = open_container(tmp_path, server.url)
    assert late.embedding.name == "first"
    second = open_container(tmp_path, server.url, "second")
    second.engine.versions.start_build(second.engine.version)
    second.engine.versions.activate(second.engine.version)
    for open_it in (lambda: late.engine.index, lambda: late.engine.writer):
        with pytest.raises(IndexVersionReplacedError, match="rebuilt with the model second"):
            open_it()
    assert list(open_container(tmp_path, server.url).engine.writer.scan()) == []


def test_an_index_that_was_lost_is_not_replaced_by_an_empty_one_for_search(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    _ = open_container(tmp_path, server.url, "first").engine.index
    with store_at(sqlite_in(tmp_path), "desk") as store:
        store.hold(stored_document("desk:a"), stored_document("desk:b"))
    shutil.rmtree(tmp_path / "index")
    searched = open_container(tmp_path, server.url, "first")
    with pytest.raises(DamagedDataError, match=r"2 in the database.*quarry reindex --rebuild"):
        _ = searched.engine.index
    assert not list(searched.engine.writer.scan()), "the next sync writes it again"


def test_a_model_behind_an_endpoint_needs_it(tmp_path: Path, server: EmbeddingServer) -> None:
    _ = open_container(tmp_path, server.url, "first").engine.writer
    with pytest.raises(ActionRequiredError, match="QUARRY_EMBEDDING_URL"):
        _ = open_container(tmp_path).embedding.embedder


def test_only_the_model_is_replaced(tmp_path: Path, server: EmbeddingServer) -> None:
    first = open_container(tmp_path, server.url, "first")
    second = first.with_model("second")
    assert second.settings.embedding_url == server.url
    assert (first.embedding.embedder.identity.model, second.embedding.embedder.identity.model) == (
        "first",
        "second",
    )
    assert first.home == second.home


def test_there_is_no_opensearch_where_none_is_set_up(tmp_path: Path) -> None:
    with pytest.raises(ActionRequiredError, match="QUARRY_OPENSEARCH_URL"):
        open_container(tmp_path).engine.versions_in("opensearch")


def test_a_database_says_without_being_opened_whether_it_holds_groups(tmp_path: Path) -> None:
    file = tmp_path / "quarry.db"
    assert not find_held_beyond_tokens(file).groups
    store = store_with(tmp_path, "desk")
    assert not find_held_beyond_tokens(file).groups
    save_groups(store.database, "desk", {"team": ["user:ann@example.com"]})
    assert find_held_beyond_tokens(file).groups
    save_groups(store.database, "desk", {})
    assert not find_held_beyond_tokens(file).groups
    save_conjunctions(
        store.database, Access.all_of([["user:ann@example.com"], ["user:bob@example.com"]])
    )
    assert find_held_beyond_tokens(file).groups
    with store.database.writing() as connection:
        connection.execute(delete(tables.conjunction_readers))
        connection.execute(delete(tables.conjunctions))
    assert not find_held_beyond_tokens(file).groups
    ann = add_person(store.database, "ann@example.com", Role.ADMIN)
    groups.replace_of_person(store.database, ann.id, "https://idp.example.com", {"staff"})
    assert find_held_beyond_tokens(file).groups
    groups.replace_of_person(store.database, ann.id, "https://idp.example.com", set())
    assert not find_held_beyond_tokens(file).groups
    OwnSourceAccounts(store.database, ann, OWNER).ask("desk", "octocat")
    assert find_held_beyond_tokens(file).groups
    damaged = tmp_path / "damaged.db"
    damaged.write_text("no database")
    assert find_held_beyond_tokens(damaged).groups


def test_what_the_owner_may_hold_is_asked_of_a_database_that_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = open_container(tmp_path)
    store_with(container.home, "desk").database.close()
    opened: list[object] = []
    connect = sqlite3.connect

    def count(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(arguments)
        connection: sqlite3.Connection = connect(*arguments, **options)
        return connection

    monkeypatch.setattr(sqlite3, "connect", count)
    own = Readers.of("public")
    assert container.home_database.resolve_readers_of_owner(own) == own
    assert len(opened) == 1


def test_the_settings_say_which_browser_and_how_much_memory(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, browser_path=Path("/opt/chromium"), browser_megabytes=600)
    with Container(settings).web.browser as browser:
        assert browser._configured == Path("/opt/chromium")
        assert browser._limits.memory_bytes == 600 << 20


def test_groups_of_parts_are_opened_without_a_home_or_a_database_being_created(
    tmp_path: Path,
) -> None:
    container = Container(Settings(home=tmp_path / "home"))
    assert container.sign_in.openid_provider is None
    with container.web.browser:
        assert not container.home_database.set_url
    _ = container.sources
    assert list(tmp_path.iterdir()) == []
    assert container.sources.limits.home == tmp_path / "home"
    assert not container.web.sessions.is_on
    assert list((tmp_path / "home").iterdir()) == []


def test_what_was_opened_of_the_web_is_closed_with_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[BrowserReader] = []

    def close(browser: BrowserReader) -> None:
        closed.append(browser)

    monkeypatch.setattr(BrowserReader, "close", close)
    container = Container(Settings(home=tmp_path))
    _ = container.web
    container.close()
    assert closed == []
    browser = container.web.browser
    container.close()
    assert closed == [browser]


def test_the_container_stays_small() -> None:
    members = [name for name in vars(Container) if not name.startswith("__")]
    assert len(members) <= 25, "a class in backend/composition groups what belongs together"
