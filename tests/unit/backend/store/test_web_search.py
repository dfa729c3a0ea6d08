"""The providers of web search, and the rules of the web, in the database."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.store import web_search
from backend.store.database import Database, open_database
from backend.store.web_search import ProviderValues, Wait, WebRules
from connectors.errors import ConflictError, NotFoundError


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as database:
        yield database


def make(name: str, **values: object) -> ProviderValues:
    usual = ProviderValues(
        name=name,
        kind="searxng",
        settings={"api_url": f"https://{name}.example.com"},
        sealed_credential="sealed",
        is_enabled=True,
        per_minute=None,
    )
    return replace(usual, **values)  # type: ignore[arg-type]


def names(database: Database) -> list[str]:
    return [one.name for one in web_search.list_providers(database)]


def test_the_web_is_off_at_first(database: Database) -> None:
    assert web_search.read_rules(database) == WebRules(
        is_on=False, allowed_domains=(), blocked_domains=(), keeps_internal_names=True
    )
    assert web_search.list_providers(database) == []


def test_rules_are_saved(database: Database) -> None:
    rules = WebRules(
        is_on=True,
        allowed_domains=("example.com", "xn--r8jz45g.jp"),
        blocked_domains=("bad.example.com",),
        keeps_internal_names=False,
    )
    web_search.save_rules(database, rules)
    assert web_search.read_rules(database) == rules


def test_providers_are_listed_in_their_order(database: Database) -> None:
    for name in ("a", "b", "c"):
        web_search.add(database, make(name))
    first, second, third = web_search.list_providers(database)
    assert (first.values, first.wait) == (make("a"), None)
    web_search.set_order(database, [third.id, first.id, second.id])
    assert names(database) == ["c", "a", "b"]
    web_search.remove(database, first.id)
    web_search.add(database, make("d"))
    assert names(database) == ["c", "b", "d"]
    with pytest.raises(ConflictError, match="'d' already"):
        web_search.add(database, make("d"))


def test_a_provider_is_changed_and_its_wait_ends(database: Database) -> None:
    web_search.add(database, make("a"))
    wait = Wait(until=datetime(2026, 4, 1, tzinfo=UTC), reason="Used up.")
    provider = web_search.find(database, "a")
    web_search.set_wait(database, provider.id, wait)
    assert web_search.find(database, "a").wait == wait
    web_search.set_wait(database, provider.id, None)
    assert web_search.find(database, "a").wait is None
    web_search.set_wait(database, provider.id, wait)
    changed = make(
        "a", settings={"x": [1, "é"]}, sealed_credential=None, per_minute=7, is_enabled=False
    )
    web_search.change(database, provider.id, changed)
    after = web_search.find(database, "a")
    assert (after.values, after.wait) == (changed, None)


@pytest.mark.parametrize("name", ["none", "", "\x00", "\ud800"])
def test_a_missing_provider_is_named(database: Database, name: str) -> None:
    with pytest.raises(NotFoundError, match="quarry web providers list"):
        web_search.find(database, name)


def test_credentials_are_rotated(database: Database) -> None:
    web_search.add(database, make("a"))
    web_search.add(database, make("b", sealed_credential=None))
    assert web_search.reencrypt_credentials(database, lambda sealed: f"{sealed} again") == 1
    sealed = [one.values.sealed_credential for one in web_search.list_providers(database)]
    assert sealed == ["sealed again", None]
    assert "sealed again" not in repr(web_search.list_providers(database))
