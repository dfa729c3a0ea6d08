"""Dot products of bytes and of half floats: SIMD kernels of numkong, or numpy where it cannot be loaded."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
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
Scales: TypeAlias = NDArray[np.float32]
"""Shape (vectors,)."""
Scores: TypeAlias = NDArray[np.float32]
"""Shape (queries, vectors)."""
Halves: TypeAlias = NDArray[np.float16]
"""Shape (vectors, dimension)."""
Rows: TypeAlias = NDArray[np.int64]
Scan: TypeAlias = Callable[[Int8s, Scores], None]
"""Writes the dot products of some queries with these vectors."""

LANES = 4
"""Queries that a packed scan takes at once at the price of one."""
SMALLEST_PART, LARGEST_PART = 4_096, 16_384
"""Vectors that are scanned at a time: fewer are not worth a thread's waking, more outgrow a core's cache."""


def scaled_dots(matrix: Int8s, scales: Scales, queries: Int8s, rows: Rows | None = None) -> Scores:
    """Every query with every vector, or with those that `rows` numbers, times the vector's scale.

    The sums are exact; a score is rounded twice, to a float32 and when it is scaled.
    """
    count = len(matrix) if rows is None else len(rows)
    found = np.empty((len(queries), count), np.float32)
    scan = numkong_scan(queries) if HAS_NUMKONG else numpy_scan(queries)

    def score(part: slice) -> None:
        taken = part if rows is None else rows[part]
        scores = found[:, part]
        scan(matrix[taken], scores)
        scores *= scales[taken]

    _share_out(count, score)
    return found


def _share_out(count: int, work: Callable[[slice], None]) -> None:
    """Do `work` on every part of `count`, on all cores that have time for it.

    Whoever is free takes the next part. Help that has not begun when no part is left is not waited for, so
    that on a busy machine this thread does all the work without delay.
    """
    cores = usable_cores()
    size = _size(count, cores)
    starts = iter(range(0, count, size))

    def take_turns() -> None:
        for start in starts:
            work(slice(start, min(start + size, count)))

    helpers = [_pool().submit(take_turns) for _ in range(min(cores, count // size) - 1)]
    take_turns()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def _size(count: int, cores: int) -> int:
    """Of a part: some for each core, so that all are done at about the same time."""
    parts = 4 * cores if cores > 1 else 1
    return min(LARGEST_PART, max(SMALLEST_PART, -(-count // parts)))


def usable_cores() -> int:
    """How many this thread may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    """One for all scans of the process: waking a thread takes a fraction of starting one."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "scan")


if hasattr(os, "register_at_fork"):
    # Threads do not follow into a forked process, and what they held locked would stay locked there.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def numkong_scan(queries: Int8s) -> Scan:
    if len(queries) == 1:
        return partial(_numkong_scan_for_one, queries)
    padded = np.zeros((-(-len(queries) // LANES) * LANES, queries.shape[1]), np.int8)
    padded[: len(queries)] = queries
    packed = numkong.dots_pack(padded)

    def scan(matrix: Int8s, out: Scores) -> None:
        out[:] = np.asarray(numkong.dots_packed(matrix, packed)).T[: len(queries)]

    return scan


def _numkong_scan_for_one(query: Int8s, matrix: Int8s, out: Scores) -> None:
    numkong.cdist(query, matrix, metric="dot", out=out, out_dtype="float32")


def numpy_scan(queries: Int8s) -> Scan:
    """In float32, which holds these sums exactly up to a dimension of 1,040."""
    wanted = queries.astype(np.float32)

    def scan(matrix: Int8s, out: Scores) -> None:
        np.matmul(wanted, matrix.astype(np.float32).T, out=out)

    return scan


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
