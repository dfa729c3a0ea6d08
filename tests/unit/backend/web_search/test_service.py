"""What admins do to web search, with its audit."""

from pathlib import Path
from typing import Any

import pytest

from backend.container import Container
from backend.settings import Settings
from backend.store import audit, web_search
from backend.store.audit import Actor
from backend.web_search.providers.registry import InvalidProviderError
from backend.web_search.search_outcome import FailureKind
from backend.web_search.service import ProviderChange, RulesChange, WebSearchService
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.runtime.deadline import Deadline
from tests.contract.provider_worlds.api_worlds import SearxngWorld, TavilyWorld
from tests.contract.provider_worlds.world import SECRET
from tests.support.services.serving import reply_json, serve
from tests.unit.backend.api.conftest import make_container

ANN = Actor("user:ann@example.com", "192.0.2.1")
KEY = {"key": SECRET}


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return make_container(tmp_path)


@pytest.fixture
def service(container: Container) -> WebSearchService:
    return container.web.service(ANN)


def entries(service: WebSearchService) -> list[tuple[str, str, dict[str, Any]]]:
    found = audit.list_entries(service.database)
    assert {one.actor for one in found} == {ANN.name}
    assert SECRET not in str(found)
    return [(one.action, one.subject, dict(one.detail)) for one in found]


def test_a_provider_is_added_with_its_key_sealed(
    service: WebSearchService, container: Container
) -> None:
    added = service.add("tavily", {}, KEY)
    assert (added.name, added.values.kind, added.values.settings) == ("tavily", "tavily", {})
    sealed = added.values.sealed_credential or ""
    assert SECRET not in sealed
    assert container.vault.open(sealed) == KEY
    assert service.add("tavily", {}, KEY).name == "tavily-2"
    assert service.add("searxng", {"api_url": "https://s.example.com"}, {}, "desk").name == "desk"
    assert [one.name for one in service.list_providers()] == ["tavily", "tavily-2", "desk"]
    assert entries(service)[0] == (
        "add_web_provider",
        "web:desk",
        {"kind": "searxng", "has_credential": False},
    )


@pytest.mark.parametrize(
    ("kind", "settings", "credential", "path"),
    [
        ("tavily", {}, {}, ("credential", "key")),
        ("tavily", {}, {"key": ""}, ("credential", "key")),
        ("tavily", {}, {"key": f"{SECRET} "}, ("credential", "key")),
        ("tavily", {}, {"key": f"{SECRET}é"}, ("credential", "key")),
        ("tavily", {"api_url": "ftp://x"}, KEY, ("settings", "api_url")),
        ("tavily", {"api_url": "http://api.example.com"}, KEY, ("settings",)),
        ("tavily", {"other": 1}, KEY, ("settings", "other")),
        ("searxng", {}, {}, ("settings", "api_url")),
        ("searxng", {"api_url": "https://s.example.com"}, KEY, ("credential", "key")),
        ("page", {"url": "https://s.example.com/"}, {}, ("settings", "url")),
    ],
)
def test_what_is_not_valid_names_the_field(
    service: WebSearchService,
    kind: str,
    settings: dict[str, Any],
    credential: dict[str, Any],
    path: tuple[str, ...],
) -> None:
    with pytest.raises(InvalidProviderError) as refused:
        service.add(kind, settings, credential)
    assert [one.path for one in refused.value.errors] == [path]
    assert SECRET not in str(refused.value)
    assert service.list_providers() == []


def test_kinds_and_names_that_there_are_not_are_refused(service: WebSearchService) -> None:
    with pytest.raises(InvalidInputError, match="tavily, brave"):
        service.add("google", {}, {})
    with pytest.raises(InvalidProviderError, match="cannot name a provider"):
        service.add("tavily", {}, KEY, "a b")
    service.add("tavily", {}, KEY, "desk")
    with pytest.raises(ConflictError):
        service.add("brave", {}, KEY, "desk")
    for act in (service.remove, service.find, lambda name: service.move(name, 1)):
        with pytest.raises(NotFoundError):
            act("none")


def test_a_provider_is_edited(service: WebSearchService, container: Container) -> None:
    service.add("tavily", {}, KEY, "desk")
    service.edit("desk", ProviderChange(is_enabled=False, per_minute=5))
    values = service.find("desk").values
    assert (values.is_enabled, values.per_minute) == (False, 5)
    assert entries(service)[0][2] == {
        "before": {"enabled": True, "per_minute": None},
        "after": {"enabled": False, "per_minute": 5},
    }
    service.edit("desk", ProviderChange(per_minute=0, credential={"key": "sk-another-key"}))
    values = service.find("desk").values
    assert values.per_minute is None
    assert container.vault.open(values.sealed_credential or "") == {"key": "sk-another-key"}
    assert entries(service)[0][2] == {
        "before": {"per_minute": 5},
        "after": {"per_minute": None},
        "credential": "replaced",
    }
    with pytest.raises(InvalidInputError):
        service.edit("desk", ProviderChange(per_minute=-1))
    with pytest.raises(InvalidProviderError):
        service.edit("desk", ProviderChange(credential={}))
    assert service.find("desk").values == values


def test_a_key_is_sent_to_no_other_server(service: WebSearchService) -> None:
    service.add("tavily", {}, KEY, "desk")
    moved = {"api_url": "https://other.example.com"}
    with pytest.raises(InvalidProviderError, match="Enter the credential again"):
        service.edit("desk", ProviderChange(settings=moved))
    service.edit("desk", ProviderChange(settings=moved, credential=KEY))
    assert service.find("desk").values.settings == moved
    service.edit("desk", ProviderChange(settings=moved))
    # The address was changed once; the second time it stayed as it was.
    same, changed = (detail for _, _, detail in entries(service)[:2])
    assert same == {"before": {}, "after": {}}
    assert changed == {
        "before": {"settings": {}},
        "after": {"settings": moved},
        "credential": "replaced",
    }


def test_providers_are_moved_and_removed(service: WebSearchService) -> None:
    for name in ("a", "b", "c"):
        service.add("tavily", {}, KEY, name)
    service.move("c", 1)
    assert [one.name for one in service.list_providers()] == ["c", "a", "b"]
    service.move("c", 99)
    assert [one.name for one in service.list_providers()] == ["a", "b", "c"]
    assert entries(service)[0] == ("move_web_provider", "web:c", {"before": 1, "after": 3})
    service.remove("b")
    assert [one.name for one in service.list_providers()] == ["a", "c"]
    gone = {
        "kind": "tavily",
        "settings": {},
        "has_credential": True,
        "enabled": True,
        "per_minute": None,
    }
    assert entries(service)[0] == ("remove_web_provider", "web:b", {"before": gone})


def test_rules_are_changed_and_audited(service: WebSearchService) -> None:
    assert not service.read_rules().is_on
    rules = service.change_rules(
        RulesChange(is_on=True, blocked_domains=["www.Bad.example", "bad.example", " "])
    )
    assert (rules.is_on, rules.blocked_domains) == (True, ("bad.example",))
    assert entries(service)[0] == (
        "change_web_search",
        "web:settings",
        {
            "before": {"is_on": False, "blocked_domains": []},
            "after": {"is_on": True, "blocked_domains": ["bad.example"]},
        },
    )
    with pytest.raises(InvalidInputError):
        service.change_rules(RulesChange(is_on=False, allowed_domains=["a b"]))
    assert service.read_rules() == rules
    service.change_rules(RulesChange(keeps_internal_names=False, blocked_domains=[]))
    assert service.read_rules().blocked_domains == ()


def test_a_test_tells_what_came_of_it(service: WebSearchService) -> None:
    world = TavilyWorld()
    with serve(world) as server:
        service.add("tavily", world.settings(server.url), KEY, "desk")
        outcome = service.test("desk", "leave", Deadline.after(20))
        assert outcome.answered_by == "desk"
        assert len(outcome.results) == 3
        assert entries(service)[0] == ("test_web_provider", "web:desk", {"outcome": "3 results"})
        world.instead = world.rejected_key()
        outcome = service.test("desk", "leave", Deadline.after(20))
        failure = outcome.attempts[0].failure
        assert failure is not None
        assert failure.kind is FailureKind.CREDENTIAL
        assert SECRET not in failure.reason
        assert entries(service)[0][2] == {"outcome": "credential"}


@pytest.mark.parametrize("name", ["message", "detail"])
def test_no_part_of_a_key_is_left_where_a_message_is_cut(
    service: WebSearchService, name: str
) -> None:
    world = TavilyWorld()
    with serve(world) as server:
        service.add("tavily", world.settings(server.url), KEY, "desk")
        world.instead = reply_json({name: "x" * (201 - len(SECRET)) + SECRET}, status=401)
        failure = service.test("desk", "leave", Deadline.after(20)).attempts[0].failure
    assert failure is not None
    assert "xxx" in failure.reason
    assert SECRET[:5] not in failure.reason


def test_searches_go_the_way_that_admins_set(
    service: WebSearchService, container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = TavilyWorld(), SearxngWorld()
    with serve(first) as one, serve(second) as two:
        service.add("tavily", first.settings(one.url), KEY)
        service.add("searxng", second.settings(two.url))
        web = container.web.search

        def ask() -> str | None:
            return web.search("leave", 5, None, None, Deadline.after(20)).answered_by

        with pytest.raises(ConflictError):
            ask()
        service.change_rules(RulesChange(is_on=True))
        assert web.is_on
        assert ask() == "tavily"
        first.instead = first.used_up()
        assert ask() == "searxng"
        wait = web_search.find(service.database, "tavily").wait
        assert wait is not None
        assert SECRET not in wait.reason
        asked = len(one.log)
        assert ask() == "searxng"
        assert len(one.log) == asked
        first.instead = None
        service.test("tavily", "leave", Deadline.after(20))
        assert web_search.find(service.database, "tavily").wait is None
        assert ask() == "tavily"
        service.move("searxng", 1)
        assert ask() == "searxng"
        service.edit("searxng", ProviderChange(is_enabled=False))
        assert ask() == "tavily"
        service.remove("tavily")
    assert SECRET not in caplog.text


def test_without_a_database_the_web_is_off_and_none_is_made(tmp_path: Path) -> None:
    empty = Container(Settings.model_validate({"home": tmp_path}))
    assert not empty.web.search.is_on
    assert not list(tmp_path.rglob("*.db"))


def test_a_credential_that_cannot_be_opened_is_a_failure(
    service: WebSearchService, container: Container, tmp_path: Path
) -> None:
    service.add("tavily", {}, KEY, "desk")
    (key_file,) = tmp_path.rglob("credentials.key")
    key_file.unlink()
    again = container.reopen().web.service(ANN)
    (attempt,) = again.test("desk", "leave", Deadline.after(5)).attempts
    assert attempt.failure is not None
    assert attempt.failure.kind is FailureKind.SETTINGS
    assert "cannot be decrypted" in attempt.failure.reason
