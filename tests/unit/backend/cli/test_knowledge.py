"""`quarry knowledge`: what research has found out for the owner of the machine."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.cli import app
from backend.research.knowledge.service import add_items
from backend.store.database import open_database, sqlite_url
from backend.store.research.knowledge_records import OWN
from tests.support.accounts import add_person
from tests.support.conversations import OWNER
from tests.support.knowledge import learn
from tests.support.terminal import run_on_terminal


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "160"})


def _keep(home: Path, *texts: str) -> list[str]:
    database = open_database(sqlite_url(home / "quarry.db"))
    try:
        return add_items(database, OWNER, OWN, [learn(text) for text in texts])
    finally:
        database.close()


def _run(cli: CliRunner, *arguments: str, given: str | None = None) -> Any:
    ran = cli.invoke(app, ["knowledge", *arguments, "--json"], input=given)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.output)


def _say(cli: CliRunner, *arguments: str) -> str:
    ran = cli.invoke(app, ["knowledge", *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.mark.soak("slow")
def test_findings_are_listed_searched_shown_edited_and_deleted(
    cli: CliRunner, tmp_path: Path
) -> None:
    assert "Nothing was found yet." in _say(cli, "list")
    leave, rain = _keep(tmp_path, "Leave is 25 days.", "It rains \x1b[31min Lyon.")
    assert [one["id"] for one in _run(cli, "list")] == [rain, leave]
    assert leave in _say(cli, "list")
    assert [one["id"] for one in _run(cli, "search", "rains in Lyon")] == [rain]
    shown = _say(cli, "show", rain)
    assert "in Lyon." in shown
    assert "\x1b" not in shown
    assert _run(cli, "edit", leave, "--answer", "28 days.")["answer"] == "28 days."
    assert _run(cli, "edit", leave, "--question", "-", given="And now?\n")["question"] == "And now?"
    assert _say(cli, "delete", leave) == f"{leave} is deleted.\n"
    assert [one["id"] for one in _run(cli, "list")] == [rain]


def test_what_is_exported_is_imported(cli: CliRunner, tmp_path: Path) -> None:
    _keep(tmp_path, "Leave is 25 days.")
    file = tmp_path / "knowledge.json"
    assert _say(cli, "export", str(file)).replace("\n", "").endswith("knowledge.json.")
    exported = json.loads(file.read_text("utf-8"))
    assert json.loads(_say(cli, "export")) == exported
    exported["items"][0]["references"] = [
        {
            "exact_quote": "x", "url": "", "document_id": "wiki:none.md", "title": "",
            "relevance_score": 1, "answer_chunk": "", "answer_chunk_position": [0, 0],
            "span": [0, 1],
        }
    ]  # fmt: skip
    file.write_text(json.dumps(exported), "utf-8")
    said = " ".join(_say(cli, "import", str(file)).split())
    assert said.startswith("1 finding imported. 1 reference dropped: ")
    assert said.endswith("1 not used until corrected.")
    report = _run(cli, "import", "-", given=file.read_text("utf-8"))
    assert (len(report["ids"]), report["dropped_references"], report["unverified"]) == (1, 1, 1)
    assert "not verified" in _say(cli, "list")


def test_what_is_exported_to_a_terminal_does_not_steer_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _keep(tmp_path, "It rains \x9b31min Lyon.")
    shown = run_on_terminal(monkeypatch, tmp_path, "knowledge", "export")
    assert "It rains �31min Lyon." in shown
    json.loads(shown)


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "never-was"], "There is no such item."),
        (["delete", "never-was"], "There is no such item."),
        (["edit", "never-was", "--answer", "x"], "There is no such item."),
        (["edit", "never-was"], "Give --question, --answer, or both."),
        (["list", "--conversation", "a", "--project", "b"], "not both"),
        (["import", "missing.json"], "missing.json cannot be read: No such file or directory."),
        (["import", "--project", "never-was", "-"], "There is no such project."),
        (["export", "missing/knowledge.json"], "cannot be written: No such file or directory."),
    ],
)
def test_what_fails_says_why(cli: CliRunner, arguments: list[str], said: str) -> None:
    failed = cli.invoke(app, ["knowledge", *arguments], input='{"items": []}')
    assert failed.exit_code in {1, 2}
    assert said in failed.stderr


def test_where_there_are_accounts_findings_are_for_each_person(
    cli: CliRunner, tmp_path: Path
) -> None:
    _keep(tmp_path, "Leave is 25 days.")
    add_person(open_database(sqlite_url(tmp_path / "quarry.db")), "ann@example.com", Role.ADMIN)
    refused = cli.invoke(app, ["knowledge", "list"])
    assert refused.exit_code == 1
    assert "on the page /knowledge" in refused.stderr
