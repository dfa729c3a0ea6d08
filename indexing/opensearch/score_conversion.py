"""The cluster's scores as the raw figures that every index tells; pure."""

import numpy as np

from indexing.embedding.embedder import Vector
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.record_mapping import BYTE

K1_PLUS_1 = 2.2
"""The factor of BM25 as Robertson wrote it. It changes no ranking; Lucene left it out later."""
DIGITS = 7
"""Of a vector's numbers; single precision has no more."""


def bm25_factor(version: str) -> float:
    """By what the BM25 of a cluster of this version is multiplied to be Robertson's, as tantivy's is."""
    major = version.partition(".")[0]
    # From its third version on the cluster scores without the factor.
    return 1.0 if major.isdigit() and int(major) < 3 else K1_PLUS_1


def product(score: float) -> float:
    """The inner product that a vector's score stands for."""
    return score - 1.0 if score >= 1.0 else 1.0 - 1.0 / score


def square(vectors: VectorSettings) -> float:
    """The inner product of a vector of length 1, as it is kept, with itself."""
    return BYTE * BYTE if vectors.quantisation == "byte" else 1.0


def asked(vector: Vector, vectors: VectorSettings) -> list[float] | list[int]:
    """A query's vector, as those that it is compared with are kept."""
    if vectors.quantisation == "byte":
        whole: list[int] = np.rint(vector * BYTE).astype(np.int8).tolist()
        return whole
    rounded: list[float] = np.round(vector.astype(np.float64), DIGITS).tolist()
    return rounded
