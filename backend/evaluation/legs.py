"""The ways of finding that are compared: each from a query to document ids, best first."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from backend.search.models import Budgets, SearchRequest
from backend.search.result_format import DocumentNumbers
from backend.search.retrieval import HYBRID_ALPHA
from backend.search.search_tool import SearchTool
from connectors.access import Readers
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Embedder, Vector
from indexing.embedding.language_support import Understanding
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.hybrid_ranking import CANDIDATES
from indexing.index.protocols import Index, IndexQuery
from indexing.runtime.deadline import Deadline

HITS = CANDIDATES
"""Chunks of a ranking: the most that leaves the legs as deep as in every search. More hits would ask
more candidates of each leg, and so measure another ranking than people are shown."""

SECONDS = 120.0
"""For one query; far more than any takes, so that none is lost to a busy machine."""

Leg: TypeAlias = Callable[[str, Vector], list[str]]
"""From a query and its vector to ids of documents, each where its best chunk ranks."""

_ANYBODY = Readers.of()


def build_legs(index: Index, embedder: Embedder, understanding: Understanding) -> Mapping[str, Leg]:
    """By the names of the report."""

    def keyword(text: str, _: Vector) -> list[str]:
        return _found(index, IndexQuery(text=text, vector=None, alpha=0.0, size=HITS))

    def vector(text: str, vector: Vector) -> list[str]:
        return _found(index, IndexQuery(text=text, vector=vector, alpha=1.0, size=HITS))

    def hybrid(text: str, vector: Vector) -> list[str]:
        alpha = HYBRID_ALPHA * understanding.share_of(text)
        return _found(index, IndexQuery(text=text, vector=vector, alpha=alpha, size=HITS))

    def search(text: str, _: Vector) -> list[str]:
        tool = SearchTool(
            index=index,
            embedder=embedder,
            understanding=understanding,
            count_tokens=estimated_tokens,
            complete=None,
            numbers=DocumentNumbers(),
        )
        return _documents(hit.chunk for hit in tool.rank(_request(text), HITS).hits)

    return {"keyword": keyword, "vector": vector, "hybrid": hybrid, "search": search}


def _found(index: Index, query: IndexQuery) -> list[str]:
    found = index.find([query], _ANYBODY, Deadline.after(SECONDS))
    return _documents(hit.chunk for hit in found.rankings[0])


def _documents(chunks: Iterable[Chunk]) -> list[str]:
    return list(dict.fromkeys(chunk.document_id for chunk in chunks))


def _request(text: str) -> SearchRequest:
    return SearchRequest(
        message=text,
        readers=_ANYBODY,
        deadline=Deadline.after(SECONDS),
        budgets=Budgets.for_window(8_192),
    )
