"""The retrieval methods that are compared: each ranks document ids for a query."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from backend.search.models import (
    Budgets,
    DocumentNumbers,
    SearchRequest,
    make_request,
    read_nothing,
)
from backend.search.retrieval import HYBRID_ALPHA
from backend.search.search_tool import SearchTool
from connectors.access import Readers
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Embedder, Vector
from indexing.embedding.language_support import LanguageSupport
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.hybrid_ranking import CANDIDATES
from indexing.index.protocols import Filters, Index, IndexQuery
from indexing.runtime.deadline import Deadline

HITS = CANDIDATES
"""Chunks of a ranking. More would take more candidates from each leg than a search does, and so
measure another ranking than the one that people are shown."""

SECONDS = 120.0
"""For one query; far more than needed, so that none times out on a busy machine."""

Leg: TypeAlias = Callable[[str, Vector], list[str]]
"""Ranks document ids, each at the place of its best chunk, for a query and its vector."""

_PUBLIC = Readers.of()


def build_legs(
    index: Index, embedder: Embedder, understanding: LanguageSupport
) -> Mapping[str, Leg]:
    """Return the methods by their names in the report."""

    def keyword(text: str, _: Vector) -> list[str]:
        return _rank(index, IndexQuery(text=text, vector=None, alpha=0.0, size=HITS))

    def vector(text: str, vector: Vector) -> list[str]:
        return _rank(index, IndexQuery(text=text, vector=vector, alpha=1.0, size=HITS))

    def hybrid(text: str, vector: Vector) -> list[str]:
        alpha = HYBRID_ALPHA * understanding.vector_weight(text)
        scale = understanding.cosine_scale
        query = IndexQuery(text=text, vector=vector, alpha=alpha, scale=scale, size=HITS)
        return _rank(index, query)

    def search(text: str, _: Vector) -> list[str]:
        tool = SearchTool(
            index=index,
            embedder=embedder,
            understanding=understanding,
            count_tokens=estimated_tokens,
            complete=None,
            numbers=DocumentNumbers(),
        )
        return _document_ids(hit.chunk for hit in tool.rank(_request(text), HITS).hits)

    return {"keyword": keyword, "vector": vector, "hybrid": hybrid, "search": search}


def _rank(index: Index, query: IndexQuery) -> list[str]:
    found = index.find([query], _PUBLIC, Deadline.after(SECONDS))
    return _document_ids(hit.chunk for hit in found.rankings[0])


def _document_ids(chunks: Iterable[Chunk]) -> list[str]:
    return list(dict.fromkeys(chunk.document_id for chunk in chunks))


def _request(text: str) -> SearchRequest:
    return make_request(
        text,
        _PUBLIC,
        Deadline.after(SECONDS),
        Budgets.for_window(8_192),
        model_queries=(),
        history=(),
        filters=Filters(),
        read=read_nothing,
    )
