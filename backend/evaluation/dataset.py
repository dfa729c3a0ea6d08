"""A test collection in the layout of BEIR: documents, queries, and which document answers which query.

A folder with `corpus.jsonl` or `corpus.jsonl.gz` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and
`qrels/test.tsv` (a header line, then query id, document id and grade with tabs between them). See Thakur
et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models" (2021).
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from connectors.errors import ActionRequiredError

Judgments = Mapping[str, Mapping[str, int]]
"""Query id to document id to grade; 0 and below is not relevant."""


class MalformedDatasetError(ActionRequiredError):
    """A file of the dataset is missing or not as it should be; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Passage:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    name: str
    """Of the folder."""
    corpus: Path
    documents: int
    digest: str
    """Of the content of the corpus."""
    queries: tuple[Query, ...]
    """Those with at least one judgment, in the order of their file."""
    judgments: Judgments
    """Of `queries`."""

    def passages(self) -> Iterator[Passage]:
        """The documents, read anew; raises MalformedDatasetError."""
        for _, passage in _passages(self.corpus):
            yield passage


def read_dataset(folder: Path, limit: int | None = None) -> Dataset:
    """Read and check a dataset; of its judged queries the first `limit`, of its documents all.

    Raises:
        MalformedDatasetError
        ValueError: `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"the number of queries must be at least 1: {limit}")
    corpus = _corpus(folder)
    documents, digest = _survey(corpus)
    judgments = _judgments(folder / "qrels" / "test.tsv")
    queries = _judged(folder / "queries.jsonl", judgments)[:limit]
    return Dataset(
        name=folder.resolve().name,
        corpus=corpus,
        documents=documents,
        digest=digest,
        queries=queries,
        judgments={query.id: judgments[query.id] for query in queries},
    )


def _corpus(folder: Path) -> Path:
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if (folder / name).is_file():
            return folder / name
    raise MalformedDatasetError(
        f"{folder}: there is no corpus.jsonl or corpus.jsonl.gz. A dataset is a folder with these,"
        " queries.jsonl and qrels/test.tsv."
    )


def _survey(corpus: Path) -> tuple[int, str]:
    """How many documents there are, each id once, and a digest of them all."""
    digest = hashlib.blake2b(digest_size=16)
    ids: set[str] = set()
    for number, passage in _passages(corpus):
        if passage.id in ids:
            raise MalformedDatasetError(
                f"{corpus}:{number}: the id {passage.id!r} stands there twice"
            )
        ids.add(passage.id)
        digest.update(json.dumps([passage.id, passage.title, passage.text]).encode())
    if not ids:
        raise MalformedDatasetError(f"{corpus}: there is no document")
    return len(ids), digest.hexdigest()


def _passages(corpus: Path) -> Iterator[tuple[int, Passage]]:
    for number, row in _rows(corpus):
        where = f"{corpus}:{number}"
        title = row.get("title") or ""
        if not isinstance(title, str):
            raise MalformedDatasetError(f'{where}: "title" is no text')
        yield number, Passage(_text(row, "_id", where), title, _text(row, "text", where))


def _judged(path: Path, judgments: Judgments) -> tuple[Query, ...]:
    queries: dict[str, Query] = {}
    for number, row in _rows(path):
        where = f"{path}:{number}"
        query = Query(_text(row, "_id", where), _text(row, "text", where))
        if query.id in queries:
            raise MalformedDatasetError(f"{where}: the id {query.id!r} stands there twice")
        queries[query.id] = query
    unknown = next((query for query in judgments if query not in queries), None)
    if unknown is not None:
        raise MalformedDatasetError(f"{path}: the query {unknown!r} of qrels/test.tsv is not there")
    return tuple(query for query in queries.values() if query.id in judgments)


def _judgments(path: Path) -> Judgments:
    judgments: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        fields = line.split("\t")
        if number == 1 or not line:
            continue
        if len(fields) != 3:
            raise MalformedDatasetError(
                f"{path}:{number}: {len(fields)} fields; expected query id, document id and grade"
                " with tabs between them"
            )
        query, document, grade = fields
        judgments.setdefault(query, {})[document] = _grade(grade, f"{path}:{number}")
    if not judgments:
        raise MalformedDatasetError(f"{path}: there is no judgment after the header line")
    return judgments


def _grade(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise MalformedDatasetError(f"{where}: the grade {text!r} is no whole number") from error


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise MalformedDatasetError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise MalformedDatasetError(f"{path}:{number}: not a JSON object")
        yield number, row


def _text(row: Mapping[str, object], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or (key == "_id" and not value):
        raise MalformedDatasetError(f'{where}: "{key}" is missing or no text')
    return value


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered from 1, without their ends; told apart by line feeds alone, as JSON Lines are."""
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode().rstrip("\r\n")
    except FileNotFoundError as error:
        raise MalformedDatasetError(f"{path}: there is no such file") from error
    except UnicodeDecodeError as error:
        raise MalformedDatasetError(f"{path}:{number}: not UTF-8: {error.reason}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedDatasetError(f"{path}:{number + 1}: cannot be read: {error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[bytes]]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        yield iter(file)
