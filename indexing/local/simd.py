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

LANES, MOST_LANES = 4, 16
"""Columns that a kernel takes at the price of one: with vector registers, and with tiles of AMX."""
FEW = 4_096
"""Below so many vectors it takes longer to lay out the columns than they save."""
SMALLEST_PART, LARGEST_PART = 8_192, 16_384
"""Vectors that are scanned at a time: fewer are not worth a thread's waking, more outgrow a core's cache."""


def scaled_dots(matrix: Int8s, scales: Scales, queries: Int8s, rows: Rows | None = None) -> Scores:
    """Every query with every vector, or with those that `rows` numbers, times the vector's scale.

    The sums are exact; a score is rounded twice, to a float32 and when it is scaled.
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

    helpers = [_pool().submit(take_turns) for _ in range(min(cores, -(-count // size)) - 1)]
    take_turns()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def _size(count: int, cores: int) -> int:
    """Of a part: some for each core, so that all are done at about the same time; none is much smaller."""
    parts = 4 * cores if cores > 1 else 1
    wished = min(LARGEST_PART, max(SMALLEST_PART, count // parts))
    size = -(-max(1, count) // max(1, count // wished))
    return -(-size // MOST_LANES) * MOST_LANES


@cache
def usable_cores() -> int:
    """How many the process might run on when it first asked."""
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


def numkong_scan(queries: Int8s, lanes: int) -> Scan:
    """Neighbouring vectors are read as one long row: a kernel finds `lanes` sums of a row at the price of one.

    The kernel multiplies each row with all its columns. There are as many for a query as a row has vectors:
    the query in the place of that vector, and zeros in those of the others.
    """
    if lanes == len(queries) == 1:
        return partial(_numkong_scan_for_one, queries)
    count, dimension = queries.shape
    joined = max(1, lanes // count)
    columns = np.zeros((joined, count, joined, dimension), np.int8)
    np.einsum("pcpd->pcd", columns)[:] = queries  # A view of where they go.
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
    """For a scan of `count` vectors."""
    return 1 if count < FEW else _most_lanes()


@cache
def _most_lanes() -> int:
    return MOST_LANES if numkong.get_capabilities().get("sapphireamx") else LANES


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
