"""`quarry tokens`: create, list, revoke."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.random_secrets import digest
from backend.cli import app


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "160"})


def test_a_token_is_printed_once_and_nothing_else(cli: CliRunner) -> None:
    created = cli.invoke(app, ["tokens", "create", "ci", "--scope", "search", "--scope", "ask"])
    token = created.output.strip()
    assert (created.exit_code, created.output) == (0, f"{token}\n")
    assert token.startswith("qry_")
    for arguments in (["tokens", "list"], ["tokens", "list", "--json"], ["audit", "--json"]):
        shown = cli.invoke(app, arguments).output
        assert "ci" in shown
        assert token not in shown
        assert digest(token) not in shown


def test_json_holds_the_token(cli: CliRunner) -> None:
    arguments = ["tokens", "create", "ci", "--scope", "search", "--json"]
    created = json.loads(cli.invoke(app, arguments).output)
    assert created["name"] == "ci"
    assert created["token"].startswith("qry_")
    revoked = cli.invoke(app, ["tokens", "revoke", "ci", "--json"])
    assert json.loads(revoked.output) == {"revoked": "ci"}


def test_tokens_are_listed_with_their_scopes_and_revoked(cli: CliRunner) -> None:
    assert cli.invoke(app, ["tokens", "list"]).output == "No API tokens yet.\n"
    cli.invoke(app, ["tokens", "create", "prometheus", "--scope", "metrics", "--days", "7"])
    (listed,) = json.loads(cli.invoke(app, ["tokens", "list", "--json"]).output)
    assert (listed["name"], listed["scopes"], listed["last_used_at"]) == (
        "prometheus",
        ["metrics"],
        None,
    )
    assert "never" in cli.invoke(app, ["tokens", "list"]).output
    revoke = ["tokens", "revoke", "prometheus"]
    assert cli.invoke(app, revoke).output == "prometheus is revoked.\n"
    refused = cli.invoke(app, [*revoke, "--json"])
    assert refused.exit_code == 1
    assert "prometheus" in json.loads(refused.output)["error"]
    assert json.loads(cli.invoke(app, ["tokens", "list", "--json"]).output) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["ci"],
        ["ci", "--scope", "everything"],
        ["ci", "--scope", "search", "--days", "0"],
        ["ci", "--scope", "search", "--days", "1000"],
    ],
)
def test_what_is_wrong_is_refused(cli: CliRunner, arguments: list[str]) -> None:
    assert cli.invoke(app, ["tokens", "create", *arguments]).exit_code == 2
