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
"""Writes the dot products of fixed queries with the given vectors."""

LANES, MAX_LANES = 4, 16
"""Columns that a kernel computes at the cost of one: with vector registers, and with tiles of AMX."""
MIN_PACKED = 4_096
"""Vectors below which packing the columns takes longer than it saves."""
MIN_PART, MAX_PART = 8_192, 16_384
"""Vectors scanned at a time: fewer do not pay for waking a thread, more exceed the cache of a core."""


def scaled_dots(matrix: Int8s, scales: Scales, queries: Int8s, rows: Rows | None = None) -> Scores:
    """Multiply every query with every vector, or those at `rows`, and scale the results.

    The sums are exact; a score is rounded twice, to float32 and when it is scaled.
    """
    count = len(matrix) if rows is None else len(rows)
    found = np.empty((len(queries), count), np.float32)
    scan = numkong_scan(queries, _lanes(count)) if HAS_NUMKONG else numpy_scan(queries)

    def score(part: slice) -> None:
        scores = found[:, part]
        if rows is None:
            scan(matrix[part], scores)
            scores *= scales[part]
        else:
            scan(matrix.take(rows[part], axis=0), scores)
            scores *= scales.take(rows[part])

    _run_in_parts(count, score)
    return found


def _run_in_parts(count: int, work: Callable[[slice], None]) -> None:
    """Run `work` on every part of `count`, on all cores that are free.

    A free thread takes the next part. Helpers that have not started when no part is left are cancelled, so
    that on a busy machine this thread does all the work without delay.
    """
    cores = usable_cores()
    size = _part_size(count, cores)
    starts = iter(range(0, count, size))

    def take_parts() -> None:
        for start in starts:
            work(slice(start, min(start + size, count)))

    helpers = [_pool().submit(take_parts) for _ in range(min(cores, -(-count // size)) - 1)]
    take_parts()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def _part_size(count: int, cores: int) -> int:
    """Return a size that gives each core several parts, so that all finish at about the same time."""
    parts = 4 * cores if cores > 1 else 1
    preferred = min(MAX_PART, max(MIN_PART, count // parts))
    size = -(-max(1, count) // max(1, count // preferred))
    return -(-size // MAX_LANES) * MAX_LANES


@cache
def usable_cores() -> int:
    """Return how many cores the process may use; determined once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads for all scans: waking a thread is much faster than starting one."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "scan")


if hasattr(os, "register_at_fork"):
    # A forked process has no threads of the pool, and locks that they held would stay locked.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def numkong_scan(queries: Int8s, lanes: int) -> Scan:
    """Build a scan that reads neighbouring vectors as one row, of which a kernel computes `lanes` sums at once.

    The kernel multiplies each row with all columns. A query has as many columns as a row has vectors: each
    holds the query at the position of one vector, and zeros elsewhere.
    """
    if lanes == len(queries) == 1:
        return partial(_numkong_scan_for_one, queries)
    count, dimension = queries.shape
    joined = max(1, lanes // count)
    columns = np.zeros((joined, count, joined, dimension), np.int8)
    np.einsum("pcpd->pcd", columns)[:] = queries  # A view of their positions.
    packed = numkong.dots_pack(columns.reshape(joined * count, joined * dimension))

    def sums(matrix: Int8s) -> NDArray[np.int32]:
        rows = matrix.reshape(-1, joined * dimension)
        return np.asarray(numkong.dots_packed(rows, packed)).reshape(-1, count).T

    def scan(matrix: Int8s, out: Scores) -> None:
        rest = len(matrix) % joined
        whole = len(matrix) - rest
        out[:, :whole] = sums(matrix[:whole])
        if rest:
            last = np.zeros((joined, dimension), np.int8)
            last[:rest] = matrix[whole:]
            out[:, whole:] = sums(last)[:, :rest]

    return scan


def _numkong_scan_for_one(query: Int8s, matrix: Int8s, out: Scores) -> None:
    numkong.cdist(query, matrix, metric="dot", out=out, out_dtype="float32")


def _lanes(count: int) -> int:
    return 1 if count < MIN_PACKED else _max_lanes()


@cache
def _max_lanes() -> int:
    return MAX_LANES if numkong.get_capabilities().get("sapphireamx") else LANES


def numpy_scan(queries: Int8s) -> Scan:
    """Build a scan in float32, which represents these sums exactly up to a dimension of 1,040."""
    wanted = queries.astype(np.float32)

    def scan(matrix: Int8s, out: Scores) -> None:
        np.matmul(wanted, matrix.astype(np.float32).T, out=out)

    return scan


def half_dots(matrix: Halves, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Multiply every half-float vector with one; numkong is ten times as fast, as it makes no wider copy."""
    if len(matrix) == 0:
        return np.empty(0, dtype=np.float32)
    if not HAS_NUMKONG:
        return half_dots_by_numpy(matrix, vector)
    query = vector.astype(np.float16)[np.newaxis]
    found: NDArray[np.float32] = np.asarray(numkong.cdist(query, matrix, metric="dot"))[0]
    return found.astype(np.float32, copy=False)


def half_dots_by_numpy(matrix: Halves, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return matrix.astype(np.float32) @ vector
