"""Questions of which people said which documents answer them, and the test collections that are made of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.evaluation.dataset import Passage, read_judged
from backend.store.database import Database
from backend.store.documents import documents
from connectors.access import Readers

_PAGE = 200


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    id: str
    text: str
    judgments: Mapping[str, int]
    """Document id to grade: 1 for one that answers it, 0 for one that does not."""

    def to_line(self) -> str:
        """Return it as a line of `queries.jsonl`, which also says what was judged."""
        fields = {"_id": self.id, "text": self.text, "judgments": dict(self.judgments)}
        return json.dumps(fields, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class WrittenDataset:
    documents: int
    questions: int
    added: int
    """Questions that were not there before."""


def add_to_dataset(
    folder: Path, questions: Sequence[JudgedQuestion], passages: Iterable[Passage]
) -> WrittenDataset:
    """Add questions to the dataset of a folder, which is made if there is none, and write its documents anew.

    Questions that it has already stay as they are: somebody may have corrected them.

    Raises:
        MalformedDatasetError: the folder holds one that cannot be read.
    """
    held = {one.id: one for one in _read_questions(folder)}
    kept = {one.id: one for one in questions} | held
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    number = _write_lines(folder / "corpus.jsonl", map(_to_corpus_line, passages))
    _write_lines(folder / "queries.jsonl", (one.to_line() for one in kept.values()))
    _write_lines(folder / "qrels" / "test.tsv", _list_judgments(kept.values()))
    return WrittenDataset(number, len(kept), len(kept) - len(held))


def list_passages(database: Database, readers: Readers) -> Iterator[Passage]:
    """Yield all documents that these readers may read."""
    after = ""
    while found := documents.list_readable(database, readers, after, _PAGE):
        after = found[-1].id
        for one in found:
            # Between the two it may have been deleted.
            if stored := documents.find(database, one.id, readers):
                text = "\n\n".join(section.text for section in stored.document.sections)
                yield Passage(one.id, one.title, text)


def _read_questions(folder: Path) -> list[JudgedQuestion]:
    if not (folder / "queries.jsonl").exists():
        return []
    queries, judgments = read_judged(folder)
    return [JudgedQuestion(one.id, one.text, judgments[one.id]) for one in queries]


def _to_corpus_line(passage: Passage) -> str:
    fields = {"_id": passage.id, "title": passage.title, "text": passage.text}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _list_judgments(questions: Iterable[JudgedQuestion]) -> Iterator[str]:
    yield "query-id\tcorpus-id\tscore\n"
    for one in questions:
        for document_id, grade in one.judgments.items():
            yield f"{one.id}\t{document_id}\t{grade}\n"


def _write_lines(path: Path, lines: Iterable[str]) -> int:
    number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(lines, start=1):  # noqa: B007 (it is returned)
            file.write(line)
    return number
