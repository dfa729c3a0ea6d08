"""A small dataset through a real index, in every way of finding."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backend.evaluation.corpus import Progress
from backend.evaluation.dataset import read_dataset
from backend.evaluation.evaluation import EvaluationDependencies, EvaluationReport, run_evaluation
from indexing.embedding.embedder import EmbedderIdentity, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, LanguageSupport
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline

SUBJECTS = ["tea", "coffee", "cocoa", "lemonade", "water", "juice", "milk", "cider"]
QUERY = '{{"_id": "q{number}", "text": "what is said of {subject}?"}}\n'


@dataclass(frozen=True)
class CountingEmbedder:
    """The hashing embedder, and how many passages it was given in each call."""

    inner: HashingEmbedder = field(default_factory=HashingEmbedder)
    passages: list[int] = field(default_factory=list)

    @property
    def identity(self) -> EmbedderIdentity:
        return self.inner.identity

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.inner.count_tokens(texts)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.inner.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        return self.inner.embed_queries(texts, deadline)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages.append(len(texts))
        return self.inner.embed_passages(texts)


@dataclass
class Evaluating:
    folder: Path
    parts: EvaluationDependencies
    embedder: CountingEmbedder
    progress: list[Progress] = field(default_factory=list)

    def run(self, limit: int | None = None) -> EvaluationReport:
        return run_evaluation(self.folder, self.parts, limit, self.progress.append)


@pytest.fixture
def evaluating(tmp_path: Path) -> Evaluating:
    folder = tmp_path / "drinks"
    (folder / "qrels").mkdir(parents=True)
    rows = [
        f'{{"_id": "{subject}", "title": "On {subject}", "text": "Here we speak of {subject}."}}\n'
        for subject in SUBJECTS
    ]
    rows.append('{"_id": "heading", "title": "Nothing but a heading", "text": ""}\n')
    rows.append('{"_id": "void", "title": "", "text": " "}\n')
    (folder / "corpus.jsonl").write_text("".join(rows), encoding="utf-8")
    queries = [QUERY.format(number=i, subject=subject) for i, subject in enumerate(SUBJECTS)]
    queries.append('{"_id": "heading", "text": "nothing but a heading"}\n')
    queries.append('{"_id": "stop", "text": "to be or not"}\n')
    (folder / "queries.jsonl").write_text("".join(queries), encoding="utf-8")
    judged = [f"q{number}\t{subject}\t1\n" for number, subject in enumerate(SUBJECTS)]
    judged += ["heading\theading\t1\n", "stop\tvoid\t1\n"]
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text("".join([header, *judged]), encoding="utf-8")
    embedder = CountingEmbedder()
    parts = EvaluationDependencies(
        open_index=lambda name, identity: open_index(tmp_path / "cache" / name, identity),
        open_writer=lambda name, identity: open_writer(tmp_path / "cache" / name, identity),
        embedder=embedder,
        understanding=EVERYTHING,
    )
    return Evaluating(folder, parts, embedder)


def test_every_leg_is_scored(evaluating: Evaluating) -> None:
    """Nine of ten queries have their answer in their words; the tenth asks for an empty document."""
    report = evaluating.run()
    assert (report.dataset, report.documents, report.queries) == ("drinks", 10, 10)
    assert list(report.legs) == ["keyword", "vector", "hybrid", "search"]
    perfect = pytest.approx({"nDCG@10": 0.9, "R@10": 0.9, "R@100": 0.9, "RR@10": 0.9})
    assert report.legs["keyword"] == perfect
    assert report.legs["hybrid"] == perfect
    assert report.legs["search"] == perfect
    assert report.legs["vector"]["R@100"] == pytest.approx(0.9)
    assert set(report.seconds) == {"index", "embed", "keyword", "vector", "hybrid", "search"}


def test_the_legs_of_an_embedder_that_understands_nothing(evaluating: Evaluating) -> None:
    deaf = EvaluationDependencies(
        open_index=evaluating.parts.open_index,
        open_writer=evaluating.parts.open_writer,
        embedder=evaluating.embedder,
        understanding=LanguageSupport({}),
    )
    report = run_evaluation(evaluating.folder, deaf, None, evaluating.progress.append)
    assert report.legs["hybrid"] == report.legs["keyword"]
    assert report.legs["search"] == report.legs["keyword"]


def test_the_second_run_embeds_nothing(evaluating: Evaluating) -> None:
    first = evaluating.run()
    assert evaluating.embedder.passages == [9]
    second = evaluating.run()
    assert evaluating.embedder.passages == [9]
    assert second.legs == first.legs


def test_a_run_goes_on_where_a_broken_one_ended(
    evaluating: Evaluating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.evaluation.corpus.BATCH", 4)

    def stop_early(progress: Progress) -> None:
        if progress == Progress("documents", 4, 10):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_evaluation(evaluating.folder, evaluating.parts, None, stop_early)
    report = evaluating.run()
    assert evaluating.embedder.passages == [4, 4, 1]
    assert report.legs["keyword"]["R@10"] == pytest.approx(0.9)


def test_other_documents_are_another_index(evaluating: Evaluating, tmp_path: Path) -> None:
    evaluating.run()
    corpus = evaluating.folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text(encoding="utf-8").replace("speak", "talk"), encoding="utf-8")
    evaluating.run()
    assert evaluating.embedder.passages == [9, 9]
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_progress_is_reported(evaluating: Evaluating) -> None:
    evaluating.run(limit=2)
    assert evaluating.progress == [
        Progress("documents", 0, 10),
        Progress("documents", 10, 10),
        Progress("queries", 0, 2),
        Progress("queries", 1, 2),
        Progress("queries", 2, 2),
    ]


def test_the_report_is_json(evaluating: Evaluating) -> None:
    report = evaluating.run(limit=1).as_json()
    assert list(report) == ["dataset", "documents", "queries", "legs", "seconds"]
    assert report["queries"] == 1


def test_a_document_ranks_where_its_best_chunk_does(evaluating: Evaluating) -> None:
    """A long document of many chunks takes one place, so that `cider` is second, not twentieth."""
    long = " ".join(f"Cider press number {number}." for number in range(900))
    with (evaluating.folder / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write(f'{{"_id": "press", "title": "Cider press", "text": "{long}"}}\n')
    report = evaluating.run()
    assert sum(evaluating.embedder.passages) > 20
    dataset = read_dataset(evaluating.folder)
    assert dataset.documents == 11
    assert report.legs["keyword"]["R@10"] == pytest.approx(0.9)
