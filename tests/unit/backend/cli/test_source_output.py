"""`quarry sources`: the list, and what can be done about one of them."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.store.database import Database, open_database
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import listings, run_transitions, runs
from backend.sync.run_lease import is_gone, this_process
from connectors.connector import Capability
from connectors.registry import SOURCE_KINDS
from indexing.ingestion.ledger import Failed
from indexing.ingestion.progress import ProgressMeter
from tests.support.databases import sqlite_in
from tests.support.store import Store, document, store_with


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With the source `docs`, an empty folder."""
    (tmp_path / "docs").mkdir()
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path)})
    assert cli.invoke(app, ["add", "folder", str(tmp_path / "docs")]).exit_code == 0
    return tmp_path


@pytest.fixture
def cli(home: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(home), "COLUMNS": "160"})


@pytest.fixture
def database(home: Path) -> Database:
    return open_database(sqlite_in(home))


def _json(cli: CliRunner, *arguments: str) -> Any:
    done = cli.invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_list_alone_is_the_list(cli: CliRunner) -> None:
    (source,) = _json(cli, "sources")
    assert (source["name"], source["kind"], source["state"]) == ("docs", "folder", "never synced")
    output = cli.invoke(app, ["sources"]).output
    assert "docs" in output
    assert "never synced" in output


def test_the_list_reports_what_a_run_is_at(cli: CliRunner, database: Database) -> None:
    run = run_transitions.begin(database, "docs", "incremental", this_process(), is_gone)
    progress = ProgressMeter("docs", "indexing", 3).advance("leave.pdf", 2)
    runs.report_progress(database, run, progress, {"documents": 2})
    output = cli.invoke(app, ["sources"]).output
    assert "docs: Indexing 2 of 3 documents · " in output
    assert "leave.pdf · since 20" in output
    assert " syncing " in output


def test_a_folder_that_is_there_works(cli: CliRunner, home: Path) -> None:
    assert {one["capability"]: one["works"] for one in _json(cli, "sources", "test", "docs")} == {
        "content": True,
        "listing": True,
        "access": True,
    }
    (home / "docs").rmdir()
    gone = cli.invoke(app, ["sources", "test", "docs"])
    assert gone.exit_code == 1
    assert "missing  content" in gone.output


def test_what_a_kind_cannot_do_is_no_failure_of_its_connection(
    cli: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    able = frozenset({Capability.CONTENT, Capability.LISTING})
    folder = replace(SOURCE_KINDS["folder"], capabilities=able)
    monkeypatch.setattr("backend.sources.service.get_source_kind", lambda _: folder)
    tested = cli.invoke(app, ["sources", "test", "docs"])
    assert tested.exit_code == 0, tested.output
    assert "none  access" in tested.output
    assert "works  content" in tested.output


def test_runs_are_reported_newest_first(cli: CliRunner, database: Database) -> None:
    assert _json(cli, "sources", "runs", "docs") == []
    for state in ("done", "failed"):
        run = run_transitions.begin(database, "docs", "incremental", this_process(), is_gone)
        run_transitions.finish(
            database, run, state, {"documents": 3}, None if state == "done" else "It broke."
        )
    body = _json(cli, "sources", "runs", "docs")
    assert [one["state"] for one in body] == ["failed", "done"]
    shown = cli.invoke(app, ["sources", "runs", "docs"]).output
    assert "It broke." in shown
    assert "3 documents" in shown


def test_failures_are_reported_and_tried_again(cli: CliRunner, home: Path) -> None:
    refused = cli.invoke(app, ["sources", "retry", "docs"])
    assert (refused.exit_code, "no failed documents" in refused.output) == (1, True)
    store_with(home).ledger.save(
        [Failed(document_id="docs:a", source="docs", item="a", link=None, reason="it is empty")]
    )
    (failure,) = _json(cli, "sources", "failures", "docs")
    assert (failure["document_id"], failure["reason"], failure["tries"]) == (
        "docs:a",
        "it is empty",
        1,
    )
    assert "1 document of docs" in _json(cli, "sources", "retry", "docs", "docs:a")["told"]
    assert cli.invoke(app, ["sources", "retry", "docs", "docs:b"]).exit_code == 1


def test_paused_and_resumed(cli: CliRunner) -> None:
    assert "paused" in _json(cli, "sources", "pause", "docs")["told"]
    assert _json(cli, "sources")[0]["state"] == "paused"
    refused = cli.invoke(app, ["sources", "prune", "docs"])
    assert (refused.exit_code, "quarry sources resume docs" in refused.output) == (1, True)
    _json(cli, "sources", "resume", "docs")
    assert _json(cli, "sources")[0]["paused_at"] is None
    assert "as soon as possible" in _json(cli, "sources", "prune", "docs")["told"]


def test_how_often_it_is_read_is_reported_and_changed(cli: CliRunner) -> None:
    done = cli.invoke(
        app, ["sources", "schedule", "docs", "--prune", "2d", "--permissions", "never"]
    )
    assert done.stdout.strip() == (
        "docs: content sync every 15 minutes; permission sync never; deletion check every 2 days."
    )
    assert cli.invoke(app, ["sources", "schedule", "docs"]).stdout == done.stdout
    wrong = cli.invoke(app, ["sources", "schedule", "docs", "--prune", "often"])
    assert (wrong.exit_code, "use 90s" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("word", "says"),
    [("cancel", "'docs' has no current run"), ("accept", "no run that waits for a decision")],
)
def test_what_cannot_be_done_says_why(cli: CliRunner, word: str, says: str) -> None:
    done = cli.invoke(app, ["sources", word, "docs"])
    assert (done.exit_code, says in done.output) == (1, True)


def test_a_decision_is_reported_with_its_numbers_and_accepted(
    cli: CliRunner, database: Database
) -> None:
    run = run_transitions.begin(database, "docs", "prune", this_process(), is_gone)
    run_transitions.require_decision(
        database, run, "Much is gone.", {"held": 900, "listed": 100, "missing": 800}
    )
    shown = cli.invoke(app, ["sources"]).output
    assert "It lists 100 of 900 documents; 800 would be deleted." in shown
    assert "quarry sources decision docs" in shown
    assert "800 documents" in _json(cli, "sources", "accept", "docs")["told"]


def test_a_decision_is_shown_with_what_would_go_and_what_to_type(
    cli: CliRunner, database: Database
) -> None:
    store = Store(database, StoredLedger(database))
    store.hold(*(document(f"docs:{number:02}") for number in range(5)))
    run = run_transitions.begin(database, "docs", "prune", this_process(), is_gone)
    store.ledger.mark_seen("docs", listings.resume(database, run).number, ["docs:00"])
    numbers = {"held": 5, "listed": 1, "missing": 4}
    run_transitions.require_decision(database, run, "Much is gone.", numbers)
    output = cli.invoke(app, ["sources", "decision", "docs", "--limit", "3"]).output.splitlines()
    assert output[0] == "It lists 1 of 5 documents; 4 would be deleted."
    assert "probably" in output[1]
    assert [line.split()[-1] for line in output[3:6]] == ["docs:01", "docs:02", "docs:03"]
    assert output[6] == "and 1 more"
    assert output[8:] == [
        "Keep them and look again: quarry sources keep docs",
        "Delete them: quarry sources accept docs",
    ]
    assert "are kept" in _json(cli, "sources", "keep", "docs")["told"]
    gone = cli.invoke(app, ["sources", "decision", "docs"])
    assert (gone.exit_code, "no run that waits for a decision" in gone.output) == (1, True)


def test_deleting_is_asked_first(cli: CliRunner) -> None:
    kept = cli.invoke(app, ["sources", "delete", "docs"], input="n\n")
    assert (kept.exit_code, "Remove docs with its 0 documents" in kept.output) == (1, True)
    assert _json(cli, "sources")[0]["state"] == "never synced"
    _json(cli, "sources", "delete", "docs", "--yes")
    assert _json(cli, "sources")[0]["state"] == "being removed"


@pytest.mark.parametrize(
    "words", [["test"], ["runs"], ["failures"], ["retry"], ["pause"], ["delete"]]
)
def test_what_is_not_there_is_reported(cli: CliRunner, words: list[str]) -> None:
    done = cli.invoke(app, ["sources", *words, "nothing"])
    assert done.exit_code == 1
    assert "There is no source named 'nothing'" in done.output


HELP = """\
import sys
from typer.testing import CliRunner
from backend.cli import app
from indexing.ingestion.progress import ProgressMeter
for words in (["--help"], ["search", "--help"], ["sources", "--help"], ["sync", "--help"]):
    assert CliRunner().invoke(app, words).exit_code == 0
print(*sorted(set(sys.modules) & {"connectors.registry", "sqlalchemy", "httpx", "lxml"}))
"""


def test_help_loads_no_source_and_no_library_of_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
