"""Read a test collection in the layout of BEIR: documents, queries, and relevance judgments.

It is a folder with `corpus.jsonl` or `corpus.jsonl.gz` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and
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

from connectors.errors import InvalidInputError

Judgments = Mapping[str, Mapping[str, int]]
"""Query id to document id to grade; 0 and below is not relevant."""


class MalformedDatasetError(InvalidInputError):
    """A file of the dataset is missing or malformed; the message names file and line."""


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
    """The name of the folder."""
    corpus: Path
    documents: int
    digest: str
    """A hash of the corpus."""
    queries: tuple[Query, ...]
    """Those with at least one judgment, in the order of their file."""
    judgments: Judgments
    """Of `queries`."""

    def passages(self) -> Iterator[Passage]:
        """Read the documents. Raises MalformedDatasetError."""
        for _, passage in _read_passages(self.corpus):
            yield passage


def read_dataset(folder: Path, limit: int | None = None) -> Dataset:
    """Read and validate a dataset: the first `limit` of its judged queries, and all documents.

    Raises:
        MalformedDatasetError
        ValueError: `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"the number of queries must be at least 1: {limit}")
    corpus = _find_corpus(folder)
    documents, digest = _count_and_hash(corpus)
    queries, judgments = read_judged(folder)
    queries = queries[:limit]
    return Dataset(
        name=folder.resolve().name,
        corpus=corpus,
        documents=documents,
        digest=digest,
        queries=queries,
        judgments={query.id: judgments[query.id] for query in queries},
    )


def read_judged(folder: Path) -> tuple[tuple[Query, ...], Judgments]:
    """Return the queries of a dataset that have judgments, in the order of their file, and the judgments.

    Raises:
        MalformedDatasetError
    """
    judgments = _read_judgments(folder / "qrels" / "test.tsv")
    return _read_queries(folder / "queries.jsonl", judgments), judgments


def _find_corpus(folder: Path) -> Path:
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if (folder / name).is_file():
            return folder / name
    raise MalformedDatasetError(
        f"{folder}: corpus.jsonl or corpus.jsonl.gz is missing. A dataset is a folder with one of"
        " these, queries.jsonl and qrels/test.tsv."
    )


def _count_and_hash(corpus: Path) -> tuple[int, str]:
    """Return the number of documents and a hash of them all. Every id must be unique."""
    digest = hashlib.blake2b(digest_size=16)
    ids: set[str] = set()
    for number, passage in _read_passages(corpus):
        if passage.id in ids:
            raise MalformedDatasetError(f"{corpus}:{number}: the id {passage.id!r} is not unique")
        ids.add(passage.id)
        digest.update(json.dumps([passage.id, passage.title, passage.text]).encode())
    if not ids:
        raise MalformedDatasetError(f"{corpus}: it has no documents")
    return len(ids), digest.hexdigest()


def _read_passages(corpus: Path) -> Iterator[tuple[int, Passage]]:
    for number, row in _read_rows(corpus):
        where = f"{corpus}:{number}"
        title = row.get("title") or ""
        if not isinstance(title, str):
            raise MalformedDatasetError(f'{where}: "title" is not a string')
        yield (
            number,
            Passage(_text_field(row, "_id", where), title, _text_field(row, "text", where)),
        )


def _read_queries(path: Path, judgments: Judgments) -> tuple[Query, ...]:
    queries: dict[str, Query] = {}
    for number, row in _read_rows(path):
        where = f"{path}:{number}"
        query = Query(_text_field(row, "_id", where), _text_field(row, "text", where))
        if query.id in queries:
            raise MalformedDatasetError(f"{where}: the id {query.id!r} is not unique")
        queries[query.id] = query
    unknown = next((query for query in judgments if query not in queries), None)
    if unknown is not None:
        raise MalformedDatasetError(f"{path}: the query {unknown!r} of qrels/test.tsv is missing")
    return tuple(query for query in queries.values() if query.id in judgments)


def _read_judgments(path: Path) -> Judgments:
    judgments: dict[str, dict[str, int]] = {}
    for number, line in _read_lines(path):
        fields = line.split("\t")
        if number == 1 or not line:
            continue
        if len(fields) != 3:
            raise MalformedDatasetError(
                f"{path}:{number}: {len(fields)} fields; expected query id, document id and grade"
                " with tabs between them"
            )
        query, document, grade = fields
        judgments.setdefault(query, {})[document] = _parse_grade(grade, f"{path}:{number}")
    if not judgments:
        raise MalformedDatasetError(f"{path}: it has no judgments after the header line")
    return judgments


def _parse_grade(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise MalformedDatasetError(f"{where}: the grade {text!r} is not an integer") from error


def _read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in _read_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise MalformedDatasetError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise MalformedDatasetError(f"{path}:{number}: not a JSON object")
        yield number, row


def _text_field(row: Mapping[str, object], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or (key == "_id" and not value):
        raise MalformedDatasetError(f'{where}: "{key}" is missing or not a string')
    return value


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines numbered from 1, split at line feeds only, as JSON Lines are."""
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode().rstrip("\r\n")
    except FileNotFoundError as error:
        raise MalformedDatasetError(f"{path}: the file does not exist") from error
    except UnicodeDecodeError as error:
        raise MalformedDatasetError(f"{path}:{number}: not UTF-8: {error.reason}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedDatasetError(f"{path}:{number + 1}: cannot be read: {error}") from error


@contextmanager
def _open(path: Path) -> Iterator[Iterator[bytes]]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        yield iter(file)
