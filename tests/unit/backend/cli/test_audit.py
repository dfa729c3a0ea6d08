"""`quarry audit`: the actions on sources, newest first."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.store import audit
from backend.store.database import open_database, sqlite_url
from backend.store.sync import run_transitions
from backend.sync.run_lease import this_process
from tests.support.store import alive
from tests.support.terminal import run_on_terminal


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path / "home"), "COLUMNS": "160"})
    for name in ("docs", "notes"):
        (tmp_path / name).mkdir()
        assert cli.invoke(app, ["add", "folder", str(tmp_path / name)]).exit_code == 0
    return cli


def test_actions_are_listed_with_their_outcome(cli: CliRunner) -> None:
    cli.invoke(app, ["sources", "pause", "docs"])
    cli.invoke(app, ["sources", "prune", "docs"])
    refused, paused, *_ = cli.invoke(app, ["audit"]).output.splitlines()[1:]
    assert "owner" in refused
    assert "refused" in refused
    assert "is paused" in refused
    assert "pause" in paused
    assert "done" in paused


def test_a_sync_is_recorded_with_whether_an_empty_listing_is_accepted(cli: CliRunner) -> None:
    assert cli.invoke(app, ["sync", "docs"]).exit_code == 0
    assert cli.invoke(app, ["sync", "--accept-empty", "notes"]).exit_code == 0
    cli.invoke(app, ["sources", "pause", "docs"])
    assert cli.invoke(app, ["sync", "docs"]).exit_code == 1
    arguments = ["audit", "--action", "sync", "--json"]
    entries = json.loads(cli.invoke(app, arguments).output)
    assert [(one["subject"], one["outcome"], one["detail"]) for one in entries] == [
        (
            "docs",
            "refused",
            {"refused": "'docs' is paused. To resume it: quarry sources resume docs"},
        ),
        ("notes", "done", {"empty_listing": "accept"}),
        ("docs", "done", {"empty_listing": "refuse"}),
    ]


def test_a_sync_that_another_process_carries_out_is_none_of_this_one(
    cli: CliRunner, tmp_path: Path
) -> None:
    database = open_database(sqlite_url(tmp_path / "home" / "quarry.db"))
    run_transitions.begin(database, "docs", "sync", this_process(), alive)
    done = cli.invoke(app, ["sync", "docs"])
    assert done.exit_code == 1
    assert "Wait until it is done, or stop it." in " ".join(done.output.split())
    assert json.loads(cli.invoke(app, ["audit", "--action", "sync", "--json"]).output) == []


def test_json_has_the_last_actions_of_a_source(cli: CliRunner) -> None:
    cli.invoke(app, ["sources", "schedule", "docs", "--prune", "never"])
    arguments = ["audit", "--source", "docs", "--limit", "1", "--json"]
    (entry,) = json.loads(cli.invoke(app, arguments).output)
    assert (entry["action"], entry["subject"], entry["detail"]) == (
        "reschedule",
        "docs",
        {"before": {"prune": 21_600}, "after": {"prune": 0}},
    )


def test_without_actions_it_says_so(tmp_path: Path) -> None:
    done = CliRunner(env={"QUARRY_HOME": str(tmp_path)}).invoke(app, ["audit"])
    assert (done.exit_code, done.output) == (0, "No actions yet.\n")


def test_actions_are_filtered(cli: CliRunner) -> None:
    cli.invoke(app, ["sources", "pause", "docs"])
    for arguments, expected in (
        (["--action", "pause"], ["pause"]),
        (["--actor", "owner", "--subject", "notes"], ["add"]),
        (["--since", "2026-01-01", "--action", "pause"], ["pause"]),
        (["--until", "2026-01-01"], []),
    ):
        entries = json.loads(cli.invoke(app, ["audit", *arguments, "--json"]).output)
        assert [entry["action"] for entry in entries] == expected
    assert cli.invoke(app, ["audit", "--actor", "nobody"]).output == "No such actions.\n"
    assert cli.invoke(app, ["audit", "--since", "soon"]).exit_code == 2


def test_all_actions_are_printed_as_a_file(cli: CliRunner) -> None:
    header, *rows = cli.invoke(app, ["audit", "--export", "csv"]).output.splitlines()
    assert header.startswith("id,at,actor")
    assert [row.split(",")[5] for row in rows] == ["notes", "docs"]
    lines = cli.invoke(app, ["audit", "--export", "jsonl"]).output.splitlines()
    assert [json.loads(line)["subject"] for line in lines] == ["notes", "docs"]


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_a_file_that_is_printed_on_a_terminal_does_not_steer_it(
    cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    database = open_database(sqlite_url(tmp_path / "home" / "quarry.db"))
    audit.record(database, "sign_in", "user:\x9b31m\u202eann", {})
    database.close()
    arguments = ("audit", "--export", format_)
    shown = run_on_terminal(monkeypatch, tmp_path / "home", *arguments)
    assert "user:�31m�ann" in shown
    written = cli.invoke(app, arguments).output
    assert "user:\x9b31m\u202eann" in written
    assert shown.count("\n") == written.count("\n")
    assert shown.count("\r") == shown.count("\r\n")
