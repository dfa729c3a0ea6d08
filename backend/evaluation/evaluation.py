"""Run the queries of a dataset through each retrieval method, and score the rankings."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from backend.evaluation.corpus import (
    Progress,
    ReportProgress,
    index_corpus,
    index_name,
    passage_id,
)
from backend.evaluation.dataset import Dataset, Query, read_dataset
from backend.evaluation.legs import SECONDS, build_legs
from backend.evaluation.measures import scores
from connectors.batched import batched
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vector
from indexing.embedding.language_support import LanguageSupport
from indexing.index.protocols import Index, IndexWriter
from indexing.runtime.deadline import Deadline

QUERIES_AT_ONCE = 64
"""Embedded in one call."""

Rankings: TypeAlias = dict[str, dict[str, list[str]]]
"""Method to query id to document ids of the dataset, best first."""
OpenIndex: TypeAlias = Callable[[str, EmbedderIdentity], AbstractContextManager[Index]]
"""Opens the index of a name; it is kept for later runs."""
OpenWriter: TypeAlias = Callable[[str, EmbedderIdentity], IndexWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationDependencies:
    open_index: OpenIndex
    open_writer: OpenWriter
    embedder: Embedder
    understanding: LanguageSupport


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    dataset: str
    documents: int
    queries: int
    legs: Mapping[str, Mapping[str, float]]
    """`keyword`, `vector`, `hybrid` and `search` to measure to mean, 0 to 1."""
    seconds: Mapping[str, float]
    """`index`, `embed` (all queries), and each leg (all queries)."""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def run_evaluation(
    folder: Path, dependencies: EvaluationDependencies, limit: int | None, progress: ReportProgress
) -> EvaluationReport:
    """Score keyword leg, vector leg, hybrid, and the search without a language model on a dataset.

    The documents are embedded in the first run only. A document ranks where its best chunk does.
    The hybrid is the weighted sum alone; exact terms are part of the search only.

    Args:
        folder: the dataset, in the layout of BEIR.
        limit: the maximum number of queries.

    Raises:
        MalformedDatasetError
        ValueError: `limit` is below 1.
        TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError: from the index or the embedder.
    """
    dataset = read_dataset(folder, limit)
    stopwatch = _Stopwatch()
    name = index_name(dataset, dependencies.embedder)
    identity = dependencies.embedder.identity
    with stopwatch.timing("index"):
        writer = dependencies.open_writer(name, identity)
        index_corpus(dataset, writer, dependencies.embedder, progress)
    with dependencies.open_index(name, identity) as index:
        rankings = _rank_all(dataset, index, dependencies, stopwatch, progress)
    return EvaluationReport(
        dataset=dataset.name,
        documents=dataset.documents,
        queries=len(dataset.queries),
        legs={leg: scores(dataset.judgments, of_leg) for leg, of_leg in rankings.items()},
        seconds={name: round(spent, 3) for name, spent in stopwatch.seconds.items()},
    )


@dataclass(frozen=True, slots=True)
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Add the time of the block to that of earlier blocks of the name."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def _rank_all(
    dataset: Dataset,
    index: Index,
    dependencies: EvaluationDependencies,
    stopwatch: _Stopwatch,
    progress: ReportProgress,
) -> Rankings:
    legs = build_legs(index, dependencies.embedder, dependencies.understanding)
    rankings: Rankings = {name: {} for name in legs}
    progress(Progress("queries", 0, len(dataset.queries)))
    for done, (query, vector) in enumerate(
        _embed_queries(dataset, dependencies, stopwatch), start=1
    ):
        for name, leg in legs.items():
            with stopwatch.timing(name):
                found = leg(query.text, vector)
            rankings[name][query.id] = [passage_id(dataset, document) for document in found]
        progress(Progress("queries", done, len(dataset.queries)))
    return rankings


def _embed_queries(
    dataset: Dataset, dependencies: EvaluationDependencies, stopwatch: _Stopwatch
) -> Iterator[tuple[Query, Vector]]:
    for some in batched(dataset.queries, QUERIES_AT_ONCE):
        with stopwatch.timing("embed"):
            texts = [query.text for query in some]
            vectors = dependencies.embedder.embed_queries(texts, Deadline.after(SECONDS))
        yield from zip(some, vectors, strict=True)
