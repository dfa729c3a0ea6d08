"""`quarry web`: on, off, rules, search, and the providers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backend.cli import app
from tests.contract.provider_worlds.api_worlds import SearxngWorld, TavilyWorld
from tests.contract.provider_worlds.world import SECRET
from tests.support.services.serving import RunningService, serve


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    env = {"QUARRY_HOME": str(tmp_path), "COLUMNS": "200", "WEB_KEY": SECRET}
    return CliRunner(env=env)


@pytest.fixture
def world() -> TavilyWorld:
    return TavilyWorld()


@pytest.fixture
def server(world: TavilyWorld) -> Iterator[RunningService]:
    with serve(world) as running:
        yield running


def run(cli: CliRunner, *arguments: str, code: int = 0) -> str:
    done = cli.invoke(app, ["web", *arguments])
    assert done.exit_code == code, done.output
    assert SECRET not in done.output
    return done.output


def run_json(cli: CliRunner, *arguments: str, code: int = 0) -> Any:
    return json.loads(run(cli, *arguments, "--json", code=code))


def add_tavily(cli: CliRunner, server: RunningService, *more: str) -> str:
    local = ("--api-url", server.url, "--private-hosts", "127.0.0.1", "--key-env", "WEB_KEY")
    return run(cli, "providers", "add", "tavily", *local, *more)


def test_the_web_is_switched_on_and_off(cli: CliRunner) -> None:
    assert "web search                 off" in run(cli, "status")
    assert "quarry web providers add" in run(cli, "on")
    assert run_json(cli, "off")["is_on"] is False
    assert run_json(cli, "status")["is_on"] is False


def test_rules_are_set_and_emptied(cli: CliRunner) -> None:
    given = ("rules", "--allow", "Example.com", "--allow", "例え.jp", "--block", "bad.example.com")
    changed = run_json(cli, *given)
    assert changed["allowed_domains"] == ["example.com", "xn--r8jz45g.jp"]
    assert changed["blocked_domains"] == ["bad.example.com"]
    changed = run_json(cli, "rules", "--allow", "none", "--send-names")
    assert (changed["allowed_domains"], changed["blocked_domains"]) == ([], ["bad.example.com"])
    assert changed["keeps_internal_names"] is False
    assert "is not a domain" in run(cli, "rules", "--allow", "a b", code=1)


def test_providers_are_added_listed_moved_limited_and_removed(
    cli: CliRunner, server: RunningService
) -> None:
    assert "quarry web providers add" in run(cli, "providers", "list")
    assert "Added tavily. To try it: quarry web providers test tavily" in add_tavily(cli, server)
    run(cli, "providers", "add", "searxng", "https://s.example.com", "--name", "desk")
    listed = run(cli, "providers", "list")
    assert "s.example.com" in listed
    run(cli, "providers", "move", "desk", "1")
    run(cli, "providers", "limit", "desk", "5")
    run(cli, "providers", "disable", "tavily")
    desk, tavily = run_json(cli, "providers", "list")
    assert (desk["name"], desk["per_minute"], desk["is_enabled"]) == ("desk", 5, True)
    assert (tavily["name"], tavily["is_enabled"], tavily["has_credential"]) == (
        "tavily",
        False,
        True,
    )
    run(cli, "providers", "enable", "tavily")
    assert "desk is removed." in run(cli, "providers", "remove", "desk")
    assert "no provider of web search named 'desk'" in run(
        cli, "providers", "remove", "desk", code=1
    )
    audited = cli.invoke(app, ["audit", "--json"]).output
    assert SECRET not in audited
    assert [one["action"] for one in json.loads(audited)][:2] == [
        "remove_web_provider",
        "change_web_provider",
    ]


def test_a_provider_is_edited_by_the_options_of_its_kind(
    cli: CliRunner, server: RunningService
) -> None:
    add_tavily(cli, server)
    help_text = run(cli, "providers", "edit", "tavily", "--help")
    assert "--api-url" in help_text
    moved = ("providers", "edit", "tavily", "--api-url", "https://other.example.com")
    assert "Enter the credential again" in run(cli, *moved, code=2)
    run(cli, *moved, "--key-env", "WEB_KEY")
    (tavily,) = run_json(cli, "providers", "list")
    assert tavily["settings"]["api_url"] == "https://other.example.com"
    assert "no provider" in run(cli, "providers", "edit", "none", code=1)


def test_terms_are_named_where_engines_without_a_key_are_added(cli: CliRunner) -> None:
    help_text = run(cli, "providers", "add", "ddgs", "--help")
    assert "forbid automated queries" in " ".join(help_text.split())
    added = run(cli, "providers", "add", "ddgs", "--engines", "duckduckgo")
    assert "DuckDuckGo: https://duckduckgo.com/terms" in added
    assert "forbid automated queries" in added
    listed = {one["name"]: one for one in run_json(cli, "providers", "list")}
    assert listed["ddgs"]["receiver"] == "duckduckgo"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tavily",), "--key-file or --key-env: Required."),
        (("searxng",), "API-URL: Required."),
        (("searxng", "http://s.example.com"), "is not encrypted"),
        (("page", "https://s.example.com"), "Write %s once"),
        (("ddgs",), "--engines: Required."),
        (("ddgs", "--engines", "brave", "--proxy", "nonsense"), "--proxy: Write a proxy as"),
    ],
)
def test_faults_name_the_option(cli: CliRunner, arguments: tuple[str, ...], said: str) -> None:
    done = cli.invoke(app, ["web", "providers", "add", *arguments])
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())


def test_a_provider_is_tried(cli: CliRunner, world: TavilyWorld, server: RunningService) -> None:
    add_tavily(cli, server)
    shown = run(cli, "providers", "test", "tavily", "--query", "leave")
    assert "1. Parental leave (2026-03-02)" in shown
    assert "Answered by tavily (127.0.0.1), which was sent: leave" in shown
    world.instead = world.rejected_key()
    failed = run(cli, "providers", "test", "tavily", code=1)
    assert "Tavily rejects the key of tavily" in failed
    assert "quarry web providers edit tavily" in failed
    assert "It was sent: weather" in failed


def test_a_search_shows_who_answered_and_who_failed(
    cli: CliRunner, world: TavilyWorld, server: RunningService
) -> None:
    assert "switched off" in run(cli, "search", "leave", code=1)
    second = SearxngWorld()
    with serve(second) as other:
        add_tavily(cli, server)
        local = ("--private-hosts", "127.0.0.1")
        run(cli, "providers", "add", "searxng", other.url, *local)
        run(cli, "on")
        world.instead = world.limited(7_200)
        shown = run(cli, "search", "parental leave", "--limit", "2", "--freshness", "week")
        assert "2. 育儿假 2026" in shown
        assert "3." not in shown
        assert "tavily: " in shown
        assert "Answered by searxng (127.0.0.1), which was sent: parental leave" in shown
        outcome = run_json(cli, "search", "leave")
        assert outcome["answered_by"] == "searxng"
        assert outcome["attempts"][0]["sent"] is None
        assert "tavily waits until" in run(cli, "providers", "list")
        second.items = ()
        assert run_json(cli, "search", "leave", code=1)["results"] == []
