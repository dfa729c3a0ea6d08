"""Vectors in memory-mapped files: all are scanned as bytes, the best are rescored as half floats.

An epoch has three files with one entry per slot: `vectors-<epoch>.i8` (the vector divided by its scale,
rounded to bytes), `.scale` (float32) and `.f16`. An epoch only grows; entries beyond `State.slots` belong to
no version yet, so writing them disturbs no reader. All files can be rebuilt from SQLite.

Dot products are computed by SIMD kernels of numkong, or by numpy where it cannot be loaded.
"""

import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from connectors.batched import batched
from indexing.embedding.embedder import Vectors

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
Slots: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Scan: TypeAlias = Callable[[Int8s, Scores], None]
"""Writes the dot products of fixed queries with the given vectors."""

LANES, MAX_LANES = 4, 16
"""Columns that a kernel computes at the cost of one: with vector registers, and with tiles of AMX."""
MIN_PACKED = 4_096
"""Vectors below which packing the columns takes longer than it saves."""
MIN_PART, MAX_PART = 8_192, 16_384
"""Vectors scanned at a time: fewer do not pay for waking a thread, more exceed the cache of a core."""

_QUANTIZED_AT_ONCE = 4_096
GROWTH = 16_384
"""Slots by which files grow, so that readers seldom have to map them again."""
RESCORED = 1.25
"""Candidates of the byte scan that are rescored, per result."""
LAST = np.float32(-1e30)
"""Added to the score of a vector that the asker may not see."""
NOTHING = np.float32(1e-30)
"""Largest component assumed for a vector of zeros, which needs a scale too."""
GATHERED_SHARE = 0.12
"""Below this share of allowed vectors it is faster to copy them out than to scan past the others."""
_KINDS: dict[str, type[np.generic]] = {"i8": np.int8, "scale": np.float32, "f16": np.float16}
_flush = getattr(os, "fdatasync", os.fsync)  # Lengths change in steps of GROWTH, and seldom.


def scaled_dots(matrix: Int8s, scales: Scales, queries: Int8s, rows: Slots | None = None) -> Scores:
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


def usable_cores() -> int:
    """Return how many cores this thread may use now."""
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
    """Build a scan that reads neighboring vectors as one row, of which a kernel computes `lanes` sums at once.

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


@dataclass(frozen=True, slots=True)
class VectorFiles:
    """The first slots of one epoch."""

    epoch: int
    bytes: Int8s
    scales: NDArray[np.float32]
    halves: Halves

    def first(self, slots: int) -> "VectorFiles":
        return VectorFiles(self.epoch, self.bytes[:slots], self.scales[:slots], self.halves[:slots])

    @property
    def capacity(self) -> int:
        return min(len(self.bytes), len(self.scales), len(self.halves))


def _path(folder: Path, epoch: int, kind: str) -> Path:
    return folder / f"vectors-{epoch}.{kind}"


def _width(kind: str, dimension: int) -> int:
    """Return the bytes of a slot."""
    return np.dtype(_KINDS[kind]).itemsize * (1 if kind == "scale" else dimension)


def are_complete(folder: Path, epoch: int, slots: int, dimension: int) -> bool:
    """Return whether the files exist and hold at least `slots` entries."""
    paths = {kind: _path(folder, epoch, kind) for kind in _KINDS}
    return slots == 0 or all(
        path.is_file() and path.stat().st_size >= slots * _width(kind, dimension)
        for kind, path in paths.items()
    )


def empty(epoch: int, dimension: int) -> VectorFiles:
    """Represent an epoch without vectors, which may have no files."""
    return VectorFiles(
        epoch,
        np.empty((0, dimension), np.int8),
        np.empty(0, np.float32),
        np.empty((0, dimension), np.float16),
    )


def map_files(folder: Path, epoch: int, dimension: int) -> VectorFiles:
    """Map the files with all their capacity.

    Raises:
        FileNotFoundError: the epoch has ended.
    """
    i8, scale, f16 = (_map_file(_path(folder, epoch, kind)) for kind in _KINDS)
    return VectorFiles(
        epoch,
        np.frombuffer(i8, np.int8).reshape(-1, dimension),
        np.frombuffer(scale, np.float32),
        np.frombuffer(f16, np.float16).reshape(-1, dimension),
    )


def _map_file(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def append(folder: Path, epoch: int, slots: int, vectors: Halves) -> None:
    """Write entries from number `slots` on; they are on disk when this returns."""
    scales, quantized = _quantize(vectors)
    parts: dict[str, NDArray[np.generic]] = {"i8": quantized, "scale": scales, "f16": vectors}
    for kind, part in parts.items():
        width = _width(kind, vectors.shape[1])
        with _open(_path(folder, epoch, kind)) as descriptor:
            _grow(descriptor, slots + len(vectors), width)
            _write(descriptor, part.tobytes(), slots * width)


@contextmanager
def _open(path: Path) -> Iterator[int]:
    """Open a file for writing in place, creating it if missing; flush it at the end of the block."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    try:
        yield descriptor
        _flush(descriptor)
    finally:
        os.close(descriptor)


def _grow(descriptor: int, slots: int, width: int) -> None:
    capacity = -(-slots // GROWTH) * GROWTH
    if os.fstat(descriptor).st_size < capacity * width:
        os.truncate(descriptor, capacity * width)


def _write(descriptor: int, content: bytes, offset: int) -> None:
    remaining = memoryview(content)
    os.lseek(descriptor, offset, os.SEEK_SET)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def build(folder: Path, epoch: int, blocks: Iterable[Halves]) -> int:
    """Write a whole epoch; return its number of slots."""
    remove(folder, epoch)
    slots = 0
    for block in blocks:
        append(folder, epoch, slots, block)
        slots += len(block)
    return slots


def remove(folder: Path, epoch: int) -> None:
    for kind in _KINDS:
        # Some systems refuse to remove a mapped file; leaving it does no harm.
        with suppress(FileNotFoundError, PermissionError):
            _path(folder, epoch, kind).unlink()


def _quantize(matrix: Vectors | Halves) -> tuple[NDArray[np.float32], Int8s]:
    """Scale each vector so that its largest component becomes 127; in parts, since numbers of four bytes take four times the result."""
    scales = np.empty(len(matrix), np.float32)
    quantized = np.empty(matrix.shape, np.int8)
    for start in range(0, len(matrix), _QUANTIZED_AT_ONCE):
        part = slice(start, start + _QUANTIZED_AT_ONCE)
        vectors = matrix[part].astype(np.float32)
        scales[part] = np.abs(vectors).max(axis=1, initial=NOTHING) / np.float32(127.0)
        quantized[part] = np.rint(vectors / scales[part, None])
    return scales, quantized


def compute_cosines(
    files: VectorFiles, slots: Slots, vector: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the cosines of the half floats at `slots`."""
    return half_dots(files.halves.take(slots, axis=0), vector)


def find_nearest(
    files: VectorFiles, queries: Vectors, allowed: Mask, count: int
) -> list[tuple[Slots, NDArray[np.float32]]]:
    """Return for each query the `count` allowed slots of highest cosine, best first, ties by slot.

    Every allowed vector is compared, so filters do not cost recall. `allowed` has one entry per slot.
    """
    _, quantized = _quantize(queries)
    candidates = round(RESCORED * count)
    number = int(np.count_nonzero(allowed))
    if number < GATHERED_SHARE * len(allowed):
        found = _scan_selected(files, quantized, np.flatnonzero(allowed), candidates)
    else:
        hidden = ~allowed if number < len(allowed) else None
        found = _scan_all(files, quantized, hidden, min(number, candidates))
    return [
        _rescore(files, slots, query, count) for slots, query in zip(found, queries, strict=True)
    ]


def _scan_selected(files: VectorFiles, queries: Int8s, selected: Slots, count: int) -> list[Slots]:
    """Return for each query the best of the selected slots by bytes, at least `count` if there are so many."""
    if len(selected) <= count:
        return [selected] * len(queries)
    scores = scaled_dots(files.bytes, files.scales, queries, selected)
    return [selected.take(_find_largest(row, count)) for row in scores]


def _scan_all(files: VectorFiles, queries: Int8s, hidden: Mask | None, count: int) -> list[Slots]:
    """Do the same over all slots; hidden vectors are scanned too, and ranked last."""
    scores = scaled_dots(files.bytes, files.scales, queries)
    if hidden is not None:
        scores += hidden * LAST
    return [_find_largest(row, count) for row in scores]


def _find_largest(scores: NDArray[np.float32], count: int) -> Slots:
    """Return the positions, ascending, of the `count` largest scores and a few more."""
    if len(scores) <= count:
        return np.arange(len(scores))
    (near,) = (scores >= _floor(scores, count)).nonzero()
    if len(near) > 2 * count:
        # A stable sort keeps the first of equal scores, so that the choice is the same each time.
        near = np.sort(near[(-scores[near]).argsort(kind="stable")[:count]])
    return near


def _floor(scores: NDArray[np.float32], count: int) -> float:
    """Return a score that at least `count` of the scores reach, and not many more.

    At least `count` scores reach the count-th largest of the maxima of disjoint groups.
    """
    groups = 8 * count
    if len(scores) < 4 * groups:
        return float(np.partition(scores, len(scores) - count)[len(scores) - count])
    whole = len(scores) // groups * groups
    maxima = scores[:whole].reshape(-1, groups).max(axis=0)
    return float(np.partition(maxima, groups - count)[groups - count])


def _rescore(
    files: VectorFiles, slots: Slots, query: NDArray[np.float32], count: int
) -> tuple[Slots, NDArray[np.float32]]:
    scores = compute_cosines(files, slots, query)
    best = (-scores).argsort(kind="stable")[:count]
    return slots.take(best), scores.take(best)


def iterate_blocks(blobs: Iterator[tuple[bytes]], dimension: int) -> Iterator[Halves]:
    """Decode stored vectors in blocks, so that memory stays bounded."""
    for block in batched((blob for (blob,) in blobs), GROWTH):
        yield np.frombuffer(b"".join(block), np.float16).reshape(-1, dimension)
