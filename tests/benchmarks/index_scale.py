"""The embedded index at 10,000, 100,000 and 500,000 chunks, beside SQLite FTS5 and float32 numpy.

By hand: `.venv/bin/python -m tests.benchmarks.index_scale 10000 100000 [--folder DIR]`. Prints a Markdown
table. Ratios compare what was measured in one run; absolute times are those of the machine.

The vector leg and numpy do the same work: of the vectors that an asker may read, the 200 nearest to a
question, by slot, each with its cosine, best first. numpy has the matrix of float32 in memory and the
numbers of the to_sendable_call vectors ready-made (the leg has a mask), multiplies by BLAS, and finds the best by
`argpartition`; for readers who see a part it multiplies all rows or a copy of the to_sendable_call ones, whichever
is quicker. Both are measured in turns in a process of their own, which is held to one core, and in
another that has all of them: BLAS and the leg start as many threads as their process has cores. Between
turns stands a pause, for the threads of BLAS go on turning for a while and would take the leg's core.

The corpus is drawn: pseudo-words of a Zipf distribution mixed with the words of a topic, about 960
characters a chunk, one to fourteen chunks a document; vectors around the topic's, with the falling spectrum
of real embeddings. Each document may be read by one to eight of 8,000 small groups, and by some of three
families of twenty groups that together see 1, 10 and 50 % of all documents.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
from numpy.typing import NDArray

from connectors.access import EVERYBODY, Access, Readers
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import EmbedderIdentity, Vector, Vectors
from indexing.index.protocols import Amend, Delete, Filters, IndexQuery, Replace
from indexing.local import LocalIndex, open_index, open_writer, vector_file
from indexing.local.access_filter import SearchScope
from indexing.local.searcher import _Search
from indexing.local.snapshot import Snapshot
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import unit

DIMENSION = 384
IDENTITY = EmbedderIdentity(model="drawn", version="1", precision="float32", dimension=DIMENSION)
VOCABULARY = 60_000
TOPICS = 400
WORDS = 150
QUERIES = 200
WANTED = 200
"""Candidates of a leg."""
ROUNDS = 3
PAUSE = 0.2
"""Seconds."""
MATRIX = "vectors.npy"
SHARES = {"1 %": 0.01, "10 %": 0.1, "50 %": 0.5}
COMMON = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "for",
    "that",
    "on",
    "with",
    "as",
    "by",
    "are",
    "be",
)


@dataclass(frozen=True)
class Corpus:
    """A corpus that is drawn as it is read, the same every time."""

    chunks: int
    seed: int = 1
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        letters = np.array(list("aaaabcddeeeeeffghiiiijklllmnnnnooooprrrrsssttttuuvwy"))
        lengths = rng.integers(4, 11, VOCABULARY)
        drawn = ("".join(rng.choice(letters, size)) for size in lengths)
        self.words.extend([*COMMON, *dict.fromkeys(drawn)])

    def documents(self) -> Iterator[Replace]:
        rng = np.random.default_rng(self.seed)
        left, number = self.chunks, 0
        while left:
            count = min(left, int(rng.integers(1, 15)))
            yield self._document(rng, f"folder:{number}", count)
            left, number = left - count, number + 1

    def _document(self, rng: np.random.Generator, name: str, count: int) -> Replace:
        topic = int(rng.integers(TOPICS))
        access = Access.to({*_groups(rng), "group:all"})
        texts = [self.text(rng, topic, WORDS) for _ in range(count)]
        return Replace(
            document_id=name,
            generation=1,
            content_hash=name,
            chunks=tuple(
                Chunk(
                    document_id=name,
                    position=position,
                    text=text,
                    embedded_text=f"Title of {name}\n{text}",
                    section=0,
                    span=Span(0, len(text)),
                    title=f"Title of {name}",
                    link=f"https://example.com/{name}",
                    source="folder",
                    media_type="text/plain",
                    access=access,
                    tags=frozenset({f"topic={topic}"}),
                )
                for position, text in enumerate(texts)
            ),
            vectors=self.vectors(rng, topic, count),
        )

    def text(self, rng: np.random.Generator, topic: int, length: int) -> str:
        everyday = rng.zipf(1.15, length) % len(self.words)
        own = (rng.zipf(1.3, length) * 7919 + topic * 104_729) % len(self.words)
        return " ".join(self.words[n] for n in np.where(rng.random(length) < 0.35, own, everyday))

    def vectors(self, rng: np.random.Generator, topic: int, count: int) -> Vectors:
        spectrum = 1.0 / np.sqrt(np.arange(1, DIMENSION + 1))
        centre = np.random.default_rng(10_000 + topic).standard_normal(DIMENSION) * spectrum
        own = rng.standard_normal((count, DIMENSION)) * spectrum
        drawn = 0.6 * centre + own + 0.02 * rng.standard_normal((count, DIMENSION))
        found: Vectors = unit(drawn)
        return found

    def queries(self) -> list[IndexQuery]:
        rng = np.random.default_rng(2)
        found = []
        for _ in range(QUERIES):
            topic = int(rng.integers(TOPICS))
            text = self.text(rng, topic, int(rng.integers(5, 11)))
            found.append(IndexQuery(text=text, vector=self.vectors(rng, topic, 1)[0], alpha=0.5))
        return found


def _groups(rng: np.random.Generator) -> set[str]:
    small = {f"group:{n}" for n in rng.integers(0, 8_000, int(rng.integers(1, 9)))}
    families = {
        f"group:{share}-{rng.integers(20)}" for share in SHARES.values() if rng.random() < share
    }
    return small | families


READERS = {"all": Readers.of("group:all")} | {
    name: Readers.of(*(f"group:{share}-{n}" for n in range(20))) for name, share in SHARES.items()
}
ALL = READERS["all"]


def _p50_p95(call: Callable[[Any], object], arguments: Sequence[Any]) -> tuple[float, float]:
    """Milliseconds of a call, over `arguments`; the first is made once before."""
    call(arguments[0])
    seconds = []
    for argument in arguments:
        start = time.perf_counter()
        call(argument)
        seconds.append(time.perf_counter() - start)
    return float(np.percentile(seconds, 50)) * 1e3, float(np.percentile(seconds, 95)) * 1e3


def _fts5(folder: Path, corpus: Corpus) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "fts5.db")
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(words, content='', tokenize='unicode61')")
    connection.executemany(
        "INSERT INTO f(words) VALUES (?)",
        (
            (" ".join(tokenizer.words(chunk.embedded_text)),)
            for document in corpus.documents()
            for chunk in document.chunks
        ),
    )
    connection.execute("INSERT INTO f(f) VALUES ('optimize')")
    connection.commit()
    return connection


def _ask_fts5(connection: sqlite3.Connection, text: str) -> list[int]:
    wanted = " OR ".join(f'"{word}"' for word in tokenizer.words(text))
    found = connection.execute(
        "SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT 200", (wanted,)
    )
    return [row for (row,) in found]


@dataclass(frozen=True)
class Rival:
    """Float32 numpy, on the work of the vector leg for one asker."""

    matrix: Vectors
    to_sendable_call: NDArray[np.int64] | None
    """Numbers of vectors; None for all."""

    def quickest(self, queries: Sequence[Vector]) -> Callable[[Vector], dict[int, float]]:
        """Of the ways to do it, by some queries."""
        if self.to_sendable_call is None:
            return self.of_all
        ways = [self.of_readable, self.of_copied]
        return min(ways, key=lambda way: min(_milliseconds(way, query) for query in queries))

    def of_all(self, query: Vector) -> dict[int, float]:
        scores = self.matrix @ query
        best = _best(scores)
        return dict(zip(best.tolist(), scores[best].tolist(), strict=True))

    def of_readable(self, query: Vector) -> dict[int, float]:
        return self._named((self.matrix @ query)[self.to_sendable_call])

    def of_copied(self, query: Vector) -> dict[int, float]:
        return self._named(self.matrix[self.to_sendable_call] @ query)

    def _named(self, scores: NDArray[np.float32]) -> dict[int, float]:
        assert self.to_sendable_call is not None
        best = _best(scores)
        return dict(zip(self.to_sendable_call[best].tolist(), scores[best].tolist(), strict=True))


def _best(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Positions of the largest, best first."""
    count = min(WANTED, len(scores))
    best = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    ordered: NDArray[np.int64] = best[np.argsort(-scores[best])]
    return ordered


def _in_turns(
    calls: Sequence[Callable[[Vector], object]], queries: Sequence[Vector]
) -> list[NDArray[np.float64]]:
    """Milliseconds of each call, by round and query."""
    rounds: list[list[list[float]]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, measured in zip(calls, rounds, strict=True):
            time.sleep(PAUSE)
            call(queries[0])
            measured.append([_milliseconds(call, query) for query in queries])
    return [np.array(measured) for measured in rounds]


def _milliseconds(call: Callable[[Vector], object], query: Vector) -> float:
    start = time.perf_counter()
    call(query)
    return (time.perf_counter() - start) * 1e3


def _against_numpy(folder: Path, queries: Sequence[Vector], cores: str) -> dict[str, str]:
    """The vector leg beside numpy, on the cores that this process has."""
    matrix = np.load(folder / MATRIX)
    figures = {}
    with open_index(folder / "index", IDENTITY) as index:
        for name, readers in READERS.items():
            with index._snapshots.current(Deadline.after(600)) as (snapshot, connection):
                scope = snapshot.scope(connection, readers, Filters())
                ask = partial(_ask_nearest, snapshot, scope)
                allowed = np.flatnonzero(scope.slots)
                rival = Rival(matrix, None if len(allowed) == len(matrix) else allowed)
                ours, theirs = _in_turns([ask, rival.quickest(queries[:5])], queries)
                recall = np.mean([_recall(matrix, allowed, query, ask(query)) for query in queries])
            for what, of in {"p50": _p50, "p50 of the quickest of rounds": _quickest}.items():
                us, them = of(ours), of(theirs)
                figures[f"{cores}: vectors {name} ÷ numpy, {what}, ms"] = (
                    f"{us:.2f} ÷ {them:.2f} = {us / them:.2f}"
                )
            figures[f"{cores}: vectors {name} p95, ms"] = f"{np.percentile(ours, 95):.2f}"
            figures[f"recall@100 {name}"] = f"{recall:.4f}"
    return figures


def _p50(measured: NDArray[np.float64]) -> float:
    return float(np.median(measured))


def _quickest(measured: NDArray[np.float64]) -> float:
    """Over the queries, each at its best: what other work on the machine changes least."""
    return float(np.median(measured.min(axis=0)))


@contextmanager
def _held_to(cores: set[int]) -> Iterator[ProcessPoolExecutor]:
    """A fresh process that has these cores from its start, when BLAS counts them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            yield process
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True)
class Bench:
    folder: Path
    corpus: Corpus

    def run(self) -> dict[str, str]:
        start = time.perf_counter()
        writer = open_writer(self.folder / "index", IDENTITY)
        written = writer.write(self.corpus.documents())
        figures = {"chunks": f"{written.chunks:,}", "load at the start": _load()}
        figures["write, s"] = f"{time.perf_counter() - start:.0f}"
        figures["disk, MB"] = f"{_size(self.folder / 'index') / 1e6:.0f}"
        with open_index(self.folder / "index", IDENTITY) as index:
            figures |= self._keyword(index)
            figures |= self._vectors()
            figures |= self._find(index)
            figures |= self._changes(index)
        figures["load at the end"] = _load()
        figures["peak memory of the run, MB"] = f"{getrusage(RUSAGE_SELF).ru_maxrss / 1024:.0f}"
        return figures

    def _keyword(self, index: LocalIndex) -> dict[str, str]:
        texts = [query.text for query in self.corpus.queries()]
        fts5 = _fts5(self.folder, self.corpus)
        theirs, _ = _p50_p95(partial(_ask_fts5, fts5), texts)
        fts5.close()
        figures = {"FTS5 p50, ms": f"{theirs:.2f}"}
        for name, readers in READERS.items():
            with index._snapshots.current(Deadline.after(60)) as (snapshot, connection):
                scope = snapshot.scope(connection, readers, Filters())
                search = _Search(snapshot, connection, readers, Deadline.after(60), BY_LANGUAGE)
                ours, late = _p50_p95(partial(_ask_keyword, search, scope), texts)
            figures[f"BM25 {name} p50/p95, ms"] = f"{ours:.2f}/{late:.2f}"
            if name == "all":
                figures["BM25 ÷ FTS5"] = f"{ours / theirs:.2f}"
        return figures

    def _vectors(self) -> dict[str, str]:
        matrix = np.concatenate([document.vectors for document in self.corpus.documents()])
        np.save(self.folder / MATRIX, matrix)
        queries = [q.vector for q in self.corpus.queries() if q.vector is not None]
        all_cores = os.sched_getaffinity(0)
        figures: dict[str, str] = {}
        for cores in ({min(all_cores)}, all_cores):
            name = "1 core" if len(cores) == 1 else f"{len(cores)} cores"
            with _held_to(cores) as process:
                figures |= process.submit(_against_numpy, self.folder, queries, name).result()
        return figures

    def _find(self, index: LocalIndex) -> dict[str, str]:
        queries = self.corpus.queries()
        pairs = list(zip(queries[::2], queries[1::2], strict=True))
        figures = {}
        for name, readers in READERS.items():
            ours, late = _p50_p95(partial(_ask_find, index, readers), pairs)
            figures[f"find, 2 variants, {name} p50/p95, ms"] = f"{ours:.2f}/{late:.2f}"
        start = time.perf_counter()
        with open_index(self.folder / "index", IDENTITY) as fresh:
            _ask_find(fresh, ALL, pairs[0])
        figures["open and first find, ms"] = f"{(time.perf_counter() - start) * 1e3:.0f}"
        return figures

    def _changes(self, index: LocalIndex) -> dict[str, str]:
        writer = open_writer(self.folder / "index", IDENTITY)
        some = list(islice(self.corpus.documents(), 20))
        replaced, _ = _p50_p95(lambda document: writer.write([document]), some)
        amended, _ = _p50_p95(
            lambda name: writer.write([Amend(document_id=name, access=EVERYBODY)]),
            [document.document_id for document in some],
        )
        refreshed = []
        for document in some:
            writer.write([Delete(document.document_id)])
            start = time.perf_counter()
            _ask_find(index, ALL, self.corpus.queries()[:1])
            refreshed.append((time.perf_counter() - start) * 1e3)
        return {
            "replace a document p50, ms": f"{replaced:.1f}",
            "amend the access of a document p50, ms": f"{amended:.1f}",
            "first find after a change p50, ms": f"{np.percentile(refreshed, 50):.1f}",
        }


def _ask_keyword(search: _Search, scope: SearchScope, text: str) -> dict[int, float]:
    return search._search_keywords(BY_LANGUAGE.query_words(text, scope.languages), scope, 200)


def _ask_nearest(snapshot: Snapshot, scope: SearchScope, vector: Vector) -> dict[int, float]:
    ((slots, scores),) = vector_file.find_nearest(
        snapshot.vectors, vector[None], scope.slots, WANTED
    )
    return dict(zip(slots.tolist(), scores.tolist(), strict=True))


def _ask_find(index: LocalIndex, readers: Readers, queries: Sequence[IndexQuery]) -> None:
    index.find(queries, readers, Deadline.after(60))


def _recall(
    matrix: Vectors, allowed: NDArray[np.int64], query: Vector, leg: dict[int, float]
) -> float:
    scores = (matrix @ query)[allowed]
    best = set(allowed[np.argsort(-scores)[:100]].tolist())
    ours = set(sorted(leg, key=lambda slot: -leg[slot])[:100])
    return len(best & ours) / len(best)


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path, help="where the indexes are made")
    arguments = parser.parse_args()
    columns = []
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            columns.append(Bench(Path(folder), Corpus(size)).run())
    print("| | " + " | ".join(column["chunks"] for column in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


if __name__ == "__main__":
    main()
