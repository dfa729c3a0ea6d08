"""`quarry feedback export`: user feedback becomes a data set that `quarry eval` scores."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.store import audit
from backend.store.chat import answer_feedback
from backend.store.chat.answer_feedback import Feedback, Rating
from backend.store.chat.messages import AnswerStatus
from backend.store.chat.turns import Ending
from backend.store.database import Database
from tests.support.conversations import OWNER, START, begin, make_answer, store, text_portion
from tests.support.models import MODEL_CACHE
from tests.support.terminal import run_on_terminal
from tests.unit.backend.api.conftest import (
    FILES,
    SOURCE,
    connected,
    make_container,
    write_files,
)

LEAVE, TRAVEL, PAY = (f"{SOURCE}:{name}" for name in ("leave.md", "travel.md", "finance/pay.md"))


def _judge(
    database: Database,
    question: str,
    rating: Rating,
    *documents: str,
    source: int | None = None,
    status: AnswerStatus = "finished",
) -> None:
    begun = begin(database, question)
    ending = Ending(
        message_id=begun.answer.id,
        status=status,
        text="So.",
        answer=make_answer("So.", *documents),
    )
    portion = text_portion(begun.answer.id, 1, "So.", documents=documents)
    store(database, begun.answer.id, portion, ending, START)
    said = Feedback(rating=rating, comment="", source=source)
    named = (begun.question.conversation_id, begun.answer.id)
    answer_feedback.put(database, OWNER, *named, said, START)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    container = make_container(tmp_path)
    write_files(tmp_path / "files")
    connected(container, tmp_path / "files")
    _judge(container.database, "How long is leave?", "good", LEAVE)
    _judge(container.database, "When is it first class?", "wrong_source", LEAVE, TRAVEL, source=1)
    _judge(container.database, "Which band?", "good", PAY)
    # What was cited until the answer was stopped need not be all that answers.
    _judge(container.database, "How long is half of a leave?", "good", LEAVE, status="stopped")
    _judge(container.database, "Where is the bike cage?", "bad", LEAVE)
    return container.database


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    settings = {"QUARRY_HOME": str(tmp_path / "state"), "QUARRY_MODELS": str(MODEL_CACHE)}
    return CliRunner(env={**settings, "COLUMNS": "200"})


def test_only_what_the_reader_may_read_is_exported(cli: CliRunner, database: Database) -> None:
    def exported(*options: str) -> dict[str, dict[str, int]]:
        done = cli.invoke(app, ["feedback", "export", *options])
        assert done.exit_code == 0, done.output
        lines = map(json.loads, done.output.splitlines())
        return {one["text"]: one["judgments"] for one in lines}

    leave = {"How long is leave?": {LEAVE: 1}}
    travel = {"When is it first class?": {LEAVE: 0, TRAVEL: 1}}
    band = {"Which band?": {PAY: 1}}
    assert exported() == leave | travel
    assert exported("--as", "group:finance") == leave | travel | band
    assert exported("--rating", "good") == leave
    entry = audit.list_entries(database, limit=1)[0]
    assert (entry.action, entry.subject, entry.detail) == (
        "export_feedback",
        "feedback:good",
        {"number": 1},
    )


def test_on_a_terminal_a_question_does_not_steer_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _judge(database, "How \x9b31m\u202elong?", "good", LEAVE)
    monkeypatch.setenv("QUARRY_MODELS", str(MODEL_CACHE))
    shown = run_on_terminal(monkeypatch, tmp_path / "state", "feedback", "export")
    assert "How �31m�long?" in shown


def test_the_data_set_is_scored(cli: CliRunner, database: Database, tmp_path: Path) -> None:
    del database
    folder = tmp_path / "judged"
    done = cli.invoke(app, ["feedback", "export", str(folder), "--json"])
    public = sum(not name.startswith(("finance", "access")) for name in FILES)
    assert json.loads(done.output) == {"documents": public, "questions": 2, "added": 2}
    again = cli.invoke(app, ["feedback", "export", str(folder)])
    assert f"0 questions added, 2 in all; {public} documents." in again.output
    assert "band five" not in (folder / "corpus.jsonl").read_text(encoding="utf-8")
    scored = cli.invoke(app, ["eval", "run", str(folder), "--json"])
    assert scored.exit_code == 0, scored.output
    assert json.loads(scored.stdout)["legs"]["search"]["RR@10"] == 1.0
