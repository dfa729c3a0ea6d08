"""Converts the cluster's scores to the figures that every index engine returns."""

import numpy as np

from indexing.embedding.embedder import Vector
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.record_mapping import BYTE_SCALE

K1_PLUS_1 = 2.2
"""The factor of Robertson's BM25. It changes no ranking, and Lucene dropped it later."""
DIGITS = 7
"""Of a vector's numbers; single precision has no more."""


def bm25_factor(version: str) -> float:
    """Return the factor from this cluster version's BM25 to Robertson's, which tantivy computes."""
    major = version.partition(".")[0]
    # Version 3 and later leave the factor out.
    return 1.0 if major.isdigit() and int(major) < 3 else K1_PLUS_1


def score_to_product(score: float) -> float:
    """Convert a vector score to the inner product."""
    return score - 1.0 if score >= 1.0 else 1.0 - 1.0 / score


def self_product(vectors: VectorSettings) -> float:
    """Return the inner product of a stored unit vector with itself."""
    return BYTE_SCALE * BYTE_SCALE if vectors.quantisation == "byte" else 1.0


def to_query_vector(vector: Vector, vectors: VectorSettings) -> list[float] | list[int]:
    """Convert a query's vector to the form in which vectors are stored."""
    if vectors.quantisation == "byte":
        scaled: list[int] = np.rint(vector * BYTE_SCALE).astype(np.int8).tolist()
        return scaled
    rounded: list[float] = np.round(vector.astype(np.float64), DIGITS).tolist()
    return rounded
