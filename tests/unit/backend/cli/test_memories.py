"""`quarry memories`: what the owner of the machine asked Quarry to remember."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.cli import app
from backend.store.database import open_database, sqlite_url
from tests.support.accounts import add_person


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "160"})


def _run(cli: CliRunner, *arguments: str, given: str | None = None) -> Any:
    ran = cli.invoke(app, ["memories", *arguments, "--json"], input=given)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.output)


def test_a_memory_is_added_changed_listed_and_removed(cli: CliRunner) -> None:
    assert "Nothing is remembered yet" in cli.invoke(app, ["memories", "list"]).output
    first = _run(cli, "add", "  I sit in Leeds. ")
    second = _run(cli, "add", "-", given="I like short answers.\n")
    assert (first["text"], second["text"]) == ("I sit in Leeds.", "I like short answers.")
    assert _run(cli, "edit", first["id"], "I sit in Graz.")["text"] == "I sit in Graz."
    assert [one["id"] for one in _run(cli, "list")] == [second["id"], first["id"]]
    shown = cli.invoke(app, ["memories", "list"]).output
    assert "I sit in Graz." in shown
    assert first["id"] in shown
    removed = cli.invoke(app, ["memories", "remove", first["id"]])
    assert removed.output == f"{first['id']} is removed.\n"
    assert [one["id"] for one in _run(cli, "list")] == [second["id"]]


def test_an_id_that_begins_with_a_hyphen_is_an_id(cli: CliRunner) -> None:
    missing = cli.invoke(app, ["memories", "remove", "--", "-x"])
    assert (missing.exit_code, missing.stderr) == (1, "There is no such memory.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["remove", "never-was"], "There is no such memory."),
        (["edit", "never-was", "Text."], "There is no such memory."),
        (["add", " "], "visible characters"),
    ],
)
def test_what_fails_says_why(cli: CliRunner, arguments: list[str], said: str) -> None:
    failed = cli.invoke(app, ["memories", *arguments])
    assert failed.exit_code == 1
    assert said in failed.stderr


def test_a_terminal_interprets_nothing_of_a_memory(cli: CliRunner) -> None:
    _run(cli, "add", "red \x1b[31m text")
    assert "\x1b" not in cli.invoke(app, ["memories", "list"]).output


def test_where_there_are_accounts_each_persons_are_theirs_alone(
    cli: CliRunner, tmp_path: Path
) -> None:
    _run(cli, "add", "I sit in Leeds.")
    add_person(open_database(sqlite_url(tmp_path / "quarry.db")), "ann@example.com", Role.ADMIN)
    for arguments in (["list"], ["add", "x"], ["remove", "x"]):
        refused = cli.invoke(app, ["memories", *arguments])
        assert refused.exit_code == 1
        assert "belongs to each person alone" in refused.stderr
