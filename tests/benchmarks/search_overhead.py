"""What a search costs beyond embedding its texts and finding them, at 100,000 chunks.

    .venv/bin/python -m tests.benchmarks.search_overhead [--chunks N] [--rounds N]

Without a language model, over 200 questions of natural language (`scale`), with the parts that
`backend.container` makes for such a search: MiniLM, what it understands, rough token counts.

- The floor: one `embed_queries` of the texts that the search embeds, and one `Index.find` of the
  queries that it asks, for the same reader.
- `run`: all of `SearchTool.run`, to SearchDone. The wanted ratio to the floor is 1.3 at most.
- `rank`: `SearchTool.rank`, the fused ranking alone.

The three are timed one after the other for each question, in an order that rotates from question
to question, so that none is the one that always finds warm what another has just read, and the
load of the machine falls on all alike. The embedder keeps no vectors: each side embeds each time.
A first round, whose times are thrown away, makes kernels and file pages warm for all.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.search.events import SearchDone
from backend.search.models import Budgets, DocumentNumbers, SearchRequest
from backend.search.search_tool import SearchTool
from connectors.access import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import load_language_support
from indexing.embedding.token_counting import rough_tokens
from indexing.index.protocols import Facets, Filters, Found, Index, IndexQuery
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.local import LocalIndex, open_index
from indexing.runtime.deadline import Deadline
from tests.benchmarks import scale
from tests.support.models import MODEL_CACHE, minilm

QUESTIONS = 200
WINDOW = 32_000
"""Tokens; the default of the settings, which bounds the text of a search."""
WANTED = 1.3
READERS = Readers.of(scale.READER)

Call = Callable[[str], object]


@dataclass
class Overheard:
    """An index that keeps the queries it was last asked."""

    index: Index
    queries: Sequence[IndexQuery] = field(default=())

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        self.queries = queries
        return self.index.find(queries, readers, deadline)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        return self.index.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        return self.index.facets(filters, readers, deadline)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self.index.suggest_corrections(query, readers, deadline)


@dataclass(frozen=True)
class Floor:
    """The embedding and the finding of what a search embeds and finds, by its question."""

    index: LocalIndex
    embedder: Embedder
    queries: dict[str, Sequence[IndexQuery]]

    def __call__(self, question: str) -> Found:
        queries = self.queries[question]
        texts = list(dict.fromkeys(query.text for query in queries if query.vector is not None))
        deadline = Deadline.after(60)
        vectors = dict(zip(texts, self.embedder.embed_queries(texts, deadline), strict=True))
        asked = [replace(query, vector=vectors.get(query.text)) for query in queries]
        return self.index.find(asked, READERS, deadline)


def search_tool(index: LocalIndex | Overheard) -> SearchTool:
    return SearchTool(
        index=index,
        embedder=minilm(),
        understanding=load_language_support(minilm(), MODEL_CACHE),
        count_tokens=rough_tokens,
        complete=None,
        numbers=DocumentNumbers(),
    )


def request(question: str) -> SearchRequest:
    return SearchRequest(
        message=question,
        readers=READERS,
        deadline=Deadline.after(60),
        budgets=Budgets.for_window(WINDOW),
    )


def run(tool: SearchTool, question: str) -> SearchDone:
    *_, done = tool.run(request(question))
    assert isinstance(done, SearchDone), "the last event of a search is its result"
    return done


def floor_of(index: LocalIndex, questions: Sequence[str]) -> Floor:
    """Runs every search once, to hear what it asks of the index."""
    queries, overheard = {}, Overheard(index)
    for question in questions:
        done = run(search_tool(overheard), question)
        assert done.result.docs, f"nothing was found for {question!r}"
        queries[question] = overheard.queries
    return Floor(index, minilm(), queries)


def seconds(calls: Sequence[Call], questions: Sequence[str]) -> NDArray[np.float64]:
    """Of every call for every question, shape (questions, calls)."""
    spent = np.empty((len(questions), len(calls)))
    for row, question in enumerate(questions):
        for turn in range(len(calls)):
            column = (row + turn) % len(calls)
            start = time.perf_counter()
            calls[column](question)
            spent[row, column] = time.perf_counter() - start
    return spent


def measure(folder: Path, rounds: int) -> None:
    questions = scale.questions(QUESTIONS)
    with closing(open_index(folder, minilm().identity)) as index:
        floor = floor_of(index, questions)
        calls: list[Call] = [
            floor,
            lambda question: run(search_tool(index), question),
            lambda question: search_tool(index).rank(request(question)),
        ]
        seconds(calls, questions)
        print(f"{len(questions)} questions, load {os.getloadavg()[0]:.1f}, wanted {WANTED}")
        print("| round | floor p50, ms | run p50, ms | run ÷ floor | rank p50, ms | rank ÷ floor |")
        print("|---|---|---|---|---|---|")
        for number in range(1, rounds + 1):
            print(row(number, np.percentile(seconds(calls, questions), 50, axis=0) * 1e3))


def row(number: int, p50: NDArray[np.float64]) -> str:
    least, whole, rank = p50
    ratios = whole / least, rank / least
    cells = f"{least:.1f} | {whole:.1f} | {ratios[0]:.2f} | {rank:.1f} | {ratios[1]:.2f}"
    return f"| {number} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=scale.CHUNKS)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    measure(scale.home(arguments.chunks) / "index", arguments.rounds)


if __name__ == "__main__":
    main()
