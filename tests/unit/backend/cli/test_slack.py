"""`quarry slack`: what it checks, and what it refuses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.cli import app
from backend.container import Container
from backend.settings import Settings
from tests.support import slack_server
from tests.support.accounts import add_person
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with SlackServer() as server:
        yield server


@pytest.fixture
def cli(tmp_path: Path, slack: SlackServer) -> CliRunner:
    settings = {f"QUARRY_{name.upper()}": value for name, value in slack.settings.items()}
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "200", **settings})


def add_account(home: Path) -> None:
    container = Container(Settings.model_validate({"home": home}))
    add_person(container.database, "ann@example.com", Role.ADMIN)
    container.close()


def check(cli: CliRunner, code: int, **env: str) -> dict[str, tuple[str, str]]:
    done = cli.invoke(app, ["slack", "check", "--json"], env=env)
    assert done.exit_code == code, done.output
    assert BOT_TOKEN not in done.output
    assert APP_TOKEN not in done.output
    return {one["name"]: (one["state"], one["detail"]) for one in json.loads(done.output)}


def test_what_works_is_said(cli: CliRunner, tmp_path: Path) -> None:
    add_account(tmp_path)
    found = check(cli, 0)
    assert {state for state, _ in found.values()} == {"ok"}
    assert found["workspace"][1] == "Example (T001), as U0BOT"
    shown = cli.invoke(app, ["slack", "check"])
    assert shown.exit_code == 0
    assert "socket mode" in shown.output


def test_what_is_missing_is_said_with_what_to_do(
    cli: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_server, "SCOPES", "chat:write,users:read")
    found = check(cli, 1, QUARRY_SLACK_APP_TOKEN="xapp-wrong")
    assert found["accounts"][0] == "failed"
    assert "users:read.email" in found["scopes"][1]
    assert found["socket mode"] == ("failed", "Slack refuses QUARRY_SLACK_APP_TOKEN: invalid_auth.")
    assert "invalid_auth" in check(cli, 1, QUARRY_SLACK_BOT_TOKEN="xoxb-wrong")["workspace"][1]
    assert "Set QUARRY_SLACK_BOT_TOKEN." in check(cli, 1, QUARRY_SLACK_BOT_TOKEN="")["workspace"][1]


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({}, "There are no accounts"),
        ({"QUARRY_SLACK_APP_TOKEN": ""}, "Set QUARRY_SLACK_APP_TOKEN."),
    ],
)
def test_it_does_not_run_where_it_cannot_answer(
    cli: CliRunner, env: dict[str, str], sentence: str
) -> None:
    done = cli.invoke(app, ["slack", "run"], env=env)
    assert done.exit_code == 1
    assert sentence in done.output


@pytest.mark.parametrize(
    ("env", "sentence", "code"),
    [
        ({"QUARRY_SLACK_BOT_TOKEN": "xoxb-wrong"}, "Slack refuses QUARRY_SLACK_BOT_TOKEN", 1),
        ({"QUARRY_SLACK_APP_TOKEN": "xapp-wrong"}, "Slack refuses QUARRY_SLACK_APP_TOKEN", 1),
        ({"QUARRY_SLACK_API_URL": "http://127.0.0.1:9/api/"}, "Slack cannot be reached", 75),
    ],
)
def test_it_does_not_run_where_slack_refuses_it(
    cli: CliRunner, tmp_path: Path, env: dict[str, str], sentence: str, code: int
) -> None:
    add_account(tmp_path)
    done = cli.invoke(app, ["slack", "run"], env=env)
    assert done.exit_code == code
    assert sentence in done.output
