"""Dot products of bytes and of half floats: SIMD kernels of numkong, or numpy where it cannot be loaded."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

try:
    import numkong
except ImportError:
    HAS_NUMKONG = False
else:
    HAS_NUMKONG = True

Int8s: TypeAlias = NDArray[np.int8]
"""Shape (vectors, dimension)."""
Dots: TypeAlias = NDArray[np.int32]
"""Shape (queries, vectors)."""
Halves: TypeAlias = NDArray[np.float16]
"""Shape (vectors, dimension)."""

LANES = 4
"""Queries that a packed scan takes at once at the price of one."""
BLOCK = 8192
SHARE = 32_768
"""Vectors that are worth a thread of their own."""


def dots(matrix: Int8s, queries: Int8s) -> Dots:
    """Every query with every vector, exactly."""
    scan = by_numkong if HAS_NUMKONG else by_numpy
    threads = min(len(matrix) // SHARE, os.cpu_count() or 1)
    if threads < 2:
        return scan(matrix, queries)
    # Started for each scan: a pool would not outlive a fork, and the start costs a tenth of what it saves.
    with ThreadPoolExecutor(threads) as pool:
        parts = pool.map(lambda part: scan(part, queries), np.array_split(matrix, threads))
        return np.concatenate(list(parts), axis=1)


def by_numkong(matrix: Int8s, queries: Int8s) -> Dots:
    if len(matrix) == 0:
        return np.empty((len(queries), 0), dtype=np.int32)
    if len(queries) == 1:
        return np.asarray(numkong.cdist(queries, matrix, metric="dot")).astype(np.int32, copy=False)
    padding = -len(queries) % LANES
    packed = numkong.dots_pack(np.pad(queries, ((0, padding), (0, 0))))
    found = np.asarray(numkong.dots_packed(matrix, packed))
    return found.T[: len(queries)]


def by_numpy(matrix: Int8s, queries: Int8s) -> Dots:
    """Block by block in float32, which holds these sums exactly up to a dimension of 1,040."""
    wanted = queries.astype(np.float32).T
    found = np.empty((len(queries), len(matrix)), dtype=np.int32)
    for start in range(0, len(matrix), BLOCK):
        block = matrix[start : start + BLOCK].astype(np.float32)
        found[:, start : start + BLOCK] = (block @ wanted).T
    return found


def half_dots(matrix: Halves, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of every half vector with one; numkong is ten times as fast, for it widens no copy."""
    if len(matrix) == 0:
        return np.empty(0, dtype=np.float32)
    if not HAS_NUMKONG:
        return half_dots_by_numpy(matrix, vector)
    query = vector.astype(np.float16)[np.newaxis]
    found: NDArray[np.float32] = np.asarray(numkong.cdist(query, matrix, metric="dot"))[0]
    return found.astype(np.float32, copy=False)


def half_dots_by_numpy(matrix: Halves, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return matrix.astype(np.float32) @ vector
