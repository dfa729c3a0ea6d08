"""Retrieve rankings for all variants with one call to the embedder and one to the index."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.search.events import StepFailed
from backend.search.fusion import VariantRanking
from backend.search.models import VariantQuery
from connectors.access import Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vector
from indexing.embedding.language_support import Understanding
from indexing.index.protocols import Filters, Index, IndexQuery
from indexing.runtime.deadline import Deadline, DeadlineExceededError

HYBRID_ALPHA = 0.5
KEYWORD_ALPHA = 0.2
HITS_PER_VARIANT = 50
EMBEDDING_SHARE = 0.5
"""Of the time that is left: a slow embedder must leave enough for the keyword leg."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """What all variants of a search have in common."""

    readers: Readers
    filters: Filters
    exact: tuple[str, ...]
    deadline: Deadline
    hits: int = HITS_PER_VARIANT
    """For each variant."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    rankings: tuple[VariantRanking, ...] = ()
    """One for each variant, in the same order."""
    partial: bool = False
    failures: tuple[StepFailed, ...] = ()


@dataclass(frozen=True, slots=True)
class Retriever:
    index: Index
    embedder: Embedder
    understanding: Understanding

    def retrieve(
        self, variants: Sequence[VariantQuery], options: RetrievalOptions
    ) -> RetrievalResult:
        """Search all variants in one `Index.find`, with vectors from one call to the embedder.

        If the embedder fails, the keyword legs are searched alone.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        if not variants:
            return RetrievalResult()
        shares = [self.understanding.share_of(variant.text) for variant in variants]
        vectors, failures = self._embed(variants, shares, options.deadline)
        queries = [
            _build_query(variant, share, vectors.get(variant.text), options)
            for variant, share in zip(variants, shares, strict=True)
        ]
        found = self.index.find(queries, options.readers, options.deadline)
        pairs = zip(variants, found.rankings, strict=True)
        rankings = tuple(VariantRanking(*pair) for pair in pairs)
        return RetrievalResult(rankings, found.partial, failures)

    def _embed(
        self, variants: Sequence[VariantQuery], shares: Sequence[float], deadline: Deadline
    ) -> tuple[dict[str, Vector], tuple[StepFailed, ...]]:
        """Embed each text in a language that the embedder supports."""
        supported = [one.text for one, share in zip(variants, shares, strict=True) if share > 0]
        texts = list(dict.fromkeys(supported))
        if not texts:
            return {}, ()
        try:
            vectors = self.embedder.embed_queries(
                texts, deadline.limited_to(deadline.remaining() * EMBEDDING_SHARE)
            )
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError) as error:
            return {}, (StepFailed("embedding", f"searched by words alone: {error}"),)
        return dict(zip(texts, vectors, strict=True)), ()


def _build_query(
    variant: VariantQuery, share: float, vector: Vector | None, options: RetrievalOptions
) -> IndexQuery:
    base = KEYWORD_ALPHA if variant.name == "keyword" else HYBRID_ALPHA
    return IndexQuery(
        text=variant.text,
        vector=vector,
        alpha=base * share if vector is not None else 0.0,
        exact=options.exact,
        size=options.hits,
        filters=options.filters,
    )
