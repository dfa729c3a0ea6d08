"""A data set that is made of feedback, added to, and read by an evaluation."""

import json
from pathlib import Path

import pytest

from backend.evaluation.dataset import MalformedDatasetError, Passage, Query, read_dataset
from backend.evaluation.judged_questions import JudgedQuestion, WrittenDataset, add_to_dataset

LEAVE, PAY = Passage("wiki:leave.md", "Leave", "26\nweeks"), Passage("wiki:pay.md", "", "Bands")
FIRST = JudgedQuestion("answer-1", "How long is «leave»?", {LEAVE.id: 1, PAY.id: 0})
SECOND = JudgedQuestion("answer-2", "Which bands?", {PAY.id: 1})


def test_what_is_written_is_read_by_an_evaluation(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "set"
    assert add_to_dataset(folder, [FIRST], [LEAVE, PAY]) == WrittenDataset(2, 1, 1)
    dataset = read_dataset(folder)
    assert dataset.queries == (Query("answer-1", "How long is «leave»?"),)
    assert dataset.judgments == {"answer-1": {LEAVE.id: 1, PAY.id: 0}}
    assert list(dataset.passages()) == [LEAVE, PAY]


def test_what_was_corrected_by_hand_stays(tmp_path: Path) -> None:
    add_to_dataset(tmp_path, [FIRST], [LEAVE, PAY])
    lines = tmp_path / "queries.jsonl"
    corrected = json.loads(lines.read_text(encoding="utf-8")) | {"text": "How long?"}
    lines.write_text(json.dumps(corrected) + "\n", encoding="utf-8")
    assert add_to_dataset(tmp_path, [FIRST, SECOND], [PAY]) == WrittenDataset(1, 2, 1)
    dataset = read_dataset(tmp_path)
    assert [one.text for one in dataset.queries] == ["How long?", "Which bands?"]
    assert dataset.judgments == {"answer-1": FIRST.judgments, "answer-2": SECOND.judgments}
    assert list(dataset.passages()) == [PAY]


def test_a_data_set_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(MalformedDatasetError):
        add_to_dataset(tmp_path, [FIRST], [LEAVE])
    assert not (tmp_path / "corpus.jsonl").exists()


def test_a_line_says_what_was_judged() -> None:
    assert json.loads(SECOND.to_line()) == {
        "_id": "answer-2",
        "text": "Which bands?",
        "judgments": {PAY.id: 1},
    }
