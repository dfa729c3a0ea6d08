"""Reading datasets in the layout of BEIR, and naming what is wrong with one."""

import gzip
from pathlib import Path

import pytest

from backend.evaluation.dataset import MalformedDatasetError, Passage, Query, read_dataset

CORPUS = '{"_id": "d1", "title": "Tea", "text": "Green tea."}\n{"_id": "d2", "text": "Coffee."}\n'
QUERIES = """{"_id": "q1", "text": "tea?"}
{"_id": "q2", "text": "nobody judged this"}
{"_id": "q3", "text": "coffee?"}
"""
JUDGMENTS = "query-id\tcorpus-id\tscore\nq3\td2\t2\nq1\td1\t1\nq1\td2\t0\n"


def write(folder: Path, **files: str) -> Path:
    """A dataset that is whole but for the `files` given, by `corpus`, `queries` and `judgments`."""
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text(files.get("corpus", CORPUS), encoding="utf-8")
    (folder / "queries.jsonl").write_text(files.get("queries", QUERIES), encoding="utf-8")
    judgments = folder / "qrels" / "test.tsv"
    judgments.write_text(files.get("judgments", JUDGMENTS), encoding="utf-8")
    return folder


def test_a_dataset_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "drinks"
    folder.mkdir()
    dataset = read_dataset(write(folder))
    assert dataset.name == "drinks"
    assert dataset.documents == 2
    assert list(dataset.passages()) == [
        Passage("d1", "Tea", "Green tea."),
        Passage("d2", "", "Coffee."),
    ]
    assert dataset.queries == (Query("q1", "tea?"), Query("q3", "coffee?"))
    assert dataset.judgments == {"q1": {"d1": 1, "d2": 0}, "q3": {"d2": 2}}


def test_a_limit_takes_the_first_judged_queries(tmp_path: Path) -> None:
    dataset = read_dataset(write(tmp_path), limit=1)
    assert dataset.queries == (Query("q1", "tea?"),)
    assert dataset.judgments.keys() == {"q1"}
    assert dataset.documents == 2
    with pytest.raises(ValueError, match="at least 1"):
        read_dataset(tmp_path, limit=0)


def test_a_packed_corpus_is_the_same_corpus(tmp_path: Path) -> None:
    plain = read_dataset(write(tmp_path))
    passages = list(plain.passages())
    (tmp_path / "corpus.jsonl").unlink()
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(CORPUS.encode()))
    packed = read_dataset(tmp_path)
    assert list(packed.passages()) == passages
    assert packed.digest == plain.digest


def test_the_digest_follows_the_documents(tmp_path: Path) -> None:
    before = read_dataset(write(tmp_path)).digest
    assert read_dataset(write(tmp_path, queries=QUERIES + "\n")).digest == before
    assert read_dataset(write(tmp_path, corpus=CORPUS.replace("Tea", "tea"))).digest != before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"corpus": ""}, "corpus.jsonl: it has no documents"),
        ({"corpus": CORPUS + "{"}, "corpus.jsonl:3: not JSON"),
        ({"corpus": CORPUS + "\n[1]"}, "corpus.jsonl:4: not a JSON object"),
        ({"corpus": CORPUS + '{"text": "x"}'}, 'corpus.jsonl:3: "_id" is missing or not a string'),
        (
            {"corpus": '{"_id": "", "text": "x"}'},
            'corpus.jsonl:1: "_id" is missing or not a string',
        ),
        ({"corpus": '{"_id": 7, "text": "x"}'}, 'corpus.jsonl:1: "_id" is missing or not a string'),
        ({"corpus": '{"_id": "d1"}'}, 'corpus.jsonl:1: "text" is missing or not a string'),
        (
            {"corpus": '{"_id": "d", "text": "", "title": 1}'},
            'corpus.jsonl:1: "title" is not a string',
        ),
        ({"corpus": CORPUS + CORPUS}, "corpus.jsonl:3: the id 'd1' is not unique"),
        ({"queries": QUERIES + QUERIES}, "queries.jsonl:4: the id 'q1' is not unique"),
        ({"queries": ""}, "queries.jsonl: the query 'q3' of qrels/test.tsv is missing"),
        ({"judgments": ""}, "test.tsv: it has no judgments"),
        ({"judgments": "query-id\tcorpus-id\tscore\n"}, "test.tsv: it has no judgments"),
        ({"judgments": JUDGMENTS + "q1 d1 1\n"}, "test.tsv:5: 1 fields; expected"),
        (
            {"judgments": JUDGMENTS + "q1\td1\t.5\n"},
            "test.tsv:5: the grade '.5' is not an integer",
        ),
    ],
)
def test_what_is_malformed_is_named_with_its_line(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises(MalformedDatasetError) as raised:
        read_dataset(write(tmp_path, **files))
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    (write(tmp_path) / name).unlink()
    with pytest.raises(MalformedDatasetError, match=name):
        read_dataset(tmp_path)


def test_text_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (write(tmp_path) / "queries.jsonl").write_bytes(QUERIES.encode() + b'{"_id": "\xff"}\n')
    with pytest.raises(MalformedDatasetError, match=r"queries\.jsonl:4: not UTF-8"):
        read_dataset(tmp_path)


@pytest.mark.parametrize("cut", [5, 40])
def test_a_packed_corpus_that_ends_too_early_is_named(tmp_path: Path, cut: int) -> None:
    (write(tmp_path) / "corpus.jsonl").unlink()
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(CORPUS.encode())[:cut])
    with pytest.raises(MalformedDatasetError, match=r"corpus\.jsonl\.gz:\d+: cannot be read"):
        read_dataset(tmp_path)


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    corpus = '{"_id": "d1", "text": "one\u2028two"}\r\n{"_id": "d2", "text": "three"}\r\n'
    dataset = read_dataset(write(tmp_path, corpus=corpus))
    assert [passage.text for passage in dataset.passages()] == ["one\u2028two", "three"]
