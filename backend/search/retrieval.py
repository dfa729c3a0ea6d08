"""Variants to rankings: one call to the embedder and one to the index for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.search.events import VariantLost, VariantQuery
from backend.search.fusion import VariantRanking
from connectors.document import Readers
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
class Scope:
    """What all variants of a search have in common."""

    readers: Readers
    filters: Filters
    exact: tuple[str, ...]
    deadline: Deadline
    hits: int = HITS_PER_VARIANT
    """For each variant."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    rankings: tuple[VariantRanking, ...] = ()
    """One for each variant, in the same order."""
    partial: bool = False
    lost: tuple[VariantLost, ...] = ()


@dataclass(frozen=True, slots=True)
class Retriever:
    index: Index
    embedder: Embedder
    understanding: Understanding

    def retrieve(self, variants: Sequence[VariantQuery], scope: Scope) -> Retrieved:
        """Search all variants in one `Index.find`, their vectors from one call to the embedder.

        An embedder that fails leaves the keyword legs.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
        """
        if not variants:
            return Retrieved()
        shares = [self.understanding.share_of(variant.text) for variant in variants]
        vectors, lost = self._vectors(variants, shares, scope.deadline)
        queries = [
            _index_query(variant, share, vectors.get(variant.text), scope)
            for variant, share in zip(variants, shares, strict=True)
        ]
        found = self.index.find(queries, scope.readers, scope.deadline)
        rankings = zip(variants, found.rankings, strict=True)
        return Retrieved(tuple(VariantRanking(*pair) for pair in rankings), found.partial, lost)

    def _vectors(
        self, variants: Sequence[VariantQuery], shares: Sequence[float], deadline: Deadline
    ) -> tuple[dict[str, Vector], tuple[VariantLost, ...]]:
        """The vector of each text that the embedder understands."""
        understood = [one.text for one, share in zip(variants, shares, strict=True) if share > 0]
        texts = list(dict.fromkeys(understood))
        if not texts:
            return {}, ()
        try:
            vectors = self.embedder.embed_queries(
                texts, deadline.limited_to(deadline.remaining() * EMBEDDING_SHARE)
            )
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError) as failure:
            return {}, (VariantLost("embedding", f"searched by words alone: {failure}"),)
        return dict(zip(texts, vectors, strict=True)), ()


def _index_query(
    variant: VariantQuery, share: float, vector: Vector | None, scope: Scope
) -> IndexQuery:
    base = KEYWORD_ALPHA if variant.name == "keyword" else HYBRID_ALPHA
    return IndexQuery(
        text=variant.text,
        vector=vector,
        alpha=base * share if vector is not None else 0.0,
        exact=scope.exact,
        size=scope.hits,
        filters=scope.filters,
    )
