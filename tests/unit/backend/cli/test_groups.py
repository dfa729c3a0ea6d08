"""`quarry groups`: list, create, rename, delete, add, remove."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.cli import app
from backend.store.database import open_database
from tests.support.accounts import add_person
from tests.support.databases import sqlite_in

ANN = "ann@example.com"


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    add_person(open_database(sqlite_in(tmp_path)), ANN, Role.ADMIN)
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "200"})


def _run(cli: CliRunner, *arguments: str) -> str:
    done = cli.invoke(app, ["groups", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_groups_are_made_changed_and_listed(cli: CliRunner) -> None:
    assert "quarry groups create NAME" in _run(cli, "list")
    assert _run(cli, "create", "Human Resources") == "group:Human%20Resources\n"
    assert _run(cli, "rename", "Human Resources", "hr") == "group:hr\n"
    assert _run(cli, "add", "hr", ANN) == f"hr has the member {ANN}.\n"
    (listed,) = json.loads(_run(cli, "list", "--json"))
    assert listed == {"name": "hr", "token": "group:hr", "origin": "quarry", "members": 1}
    assert "group:hr" in _run(cli, "list")
    assert _run(cli, "list", "hr") == f"{ANN}\n"
    assert json.loads(_run(cli, "list", "hr", "--json")) == [{"email": ANN, "name": "Ann"}]
    assert _run(cli, "remove", "hr", ANN) == f"hr no longer has the member {ANN}.\n"
    assert json.loads(_run(cli, "delete", "hr", "--json")) == {"name": "hr", "done": "is deleted"}
    assert json.loads(_run(cli, "list", "--json")) == []
    assert json.loads(_run(cli, "create", "x", "--json"))["token"] == "group:x"


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "hr"],
        ["create", " "],
        ["delete", "none"],
        ["add", "hr", "nobody@example.com"],
        ["add", "hr", "no address"],
        ["remove", "hr", ANN],
        ["rename", "none", "x"],
        ["list", "none"],
    ],
)
def test_what_is_refused_says_why(cli: CliRunner, arguments: list[str]) -> None:
    _run(cli, "create", "hr")
    refused = cli.invoke(app, ["groups", *arguments, "--json"])
    assert refused.exit_code == 1
    assert len(json.loads(refused.output)["error"]) > 20
