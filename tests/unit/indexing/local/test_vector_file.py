"""Byte scans are exact, and what is rescored is what float32 would have found."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import enumerate as enumerate_threads

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from indexing.embedding.embedder import Vectors
from indexing.local import vector_file
from indexing.local.vector_file import (
    LANES,
    MAX_LANES,
    MAX_PART,
    MIN_PART,
    Int8s,
    Scan,
    Scores,
    half_dots,
    half_dots_by_numpy,
    numkong_scan,
    numpy_scan,
    scaled_dots,
    usable_cores,
)
from tests.support.chunks import unit
from tests.support.memory import measure_peak

RNG = np.random.default_rng(5)
KERNELS: list[Callable[[Int8s], Scan]] = [
    *(partial(numkong_scan, lanes=lanes) for lanes in (1, LANES, MAX_LANES)),
    numpy_scan,
]


def drawn(count: int, dimension: int = 64) -> Vectors:
    return unit(RNG.standard_normal((count, dimension)))


def files(folder: Path, matrix: Vectors) -> vector_file.VectorFiles:
    vector_file.append(folder, 0, 0, matrix.astype(np.float16))
    return vector_file.map_files(folder, 0, matrix.shape[1]).first(len(matrix))


def test_many_vectors_are_quantized_in_parts(tmp_path: Path) -> None:
    matrix = drawn(20_000).astype(np.float16)
    # Bytes, scales and their form for the file take 2.8 megabytes, all vectors with four bytes a number 5.1.
    assert measure_peak(lambda: vector_file.append(tmp_path, 0, 0, matrix)) < 6_000_000
    found = vector_file.map_files(tmp_path, 0, 64).first(len(matrix))
    (tmp_path / "part").mkdir()
    for part in (slice(0, 1), slice(4_095, 4_098), slice(19_999, 20_000)):
        vector_file.append(tmp_path / "part", 0, 0, matrix[part])
        alone = vector_file.map_files(tmp_path / "part", 0, 64).first(part.stop - part.start)
        assert (alone.bytes == found.bytes[part]).all()
        assert (alone.scales == found.scales[part]).all()
        assert (alone.halves == found.halves[part]).all()


def scanned(kernel: Callable[[Int8s], Scan], matrix: Int8s, queries: Int8s) -> Scores:
    found = np.full((len(queries), len(matrix)), np.nan, np.float32)
    kernel(queries)(matrix, found)
    return found


@given(
    arrays(np.int8, st.tuples(st.integers(1, 40), st.just(33))),
    arrays(np.int8, st.tuples(st.integers(1, 9), st.just(33))),
)
def test_every_kernel_is_exact(matrix: Int8s, queries: Int8s) -> None:
    expected = queries.astype(np.int64) @ matrix.astype(np.int64).T
    for kernel in KERNELS:
        assert np.array_equal(scanned(kernel, matrix, queries), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_largest_sums_are_exact(kernel: Callable[[Int8s], Scan]) -> None:
    matrix = np.full((3, 1_024), 127, dtype=np.int8)
    matrix[1] = -127
    assert scanned(kernel, matrix, matrix[:1]).tolist() == [
        [127 * 127 * 1_024, -127 * 127 * 1_024, 127 * 127 * 1_024]
    ]


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("count", [MIN_PART - 1, 3 * MIN_PART, 5 * MAX_PART + 5])
def test_every_part_of_a_scan_is_done(count: int, queries: int) -> None:
    matrix = RNG.integers(-127, 128, (count, 16), dtype=np.int8)
    scales = RNG.random(count, np.float32)
    found = scaled_dots(matrix, scales, matrix[-queries:])
    assert np.array_equal(found, scanned(numpy_scan, matrix, matrix[-queries:]) * scales)
    rows = np.flatnonzero(RNG.random(count) < 0.7)
    assert np.array_equal(scaled_dots(matrix, scales, matrix[-queries:], rows), found[:, rows])


def test_many_may_scan_at_once() -> None:
    matrix = RNG.integers(-127, 128, (5 * MIN_PART, 16), dtype=np.int8)
    scales = np.ones(len(matrix), np.float32)
    with ThreadPoolExecutor(8) as askers:
        found = list(
            askers.map(lambda n: scaled_dots(matrix, scales, matrix[n : n + 1]), range(64))
        )
    assert np.array_equal(np.concatenate(found), scanned(numpy_scan, matrix, matrix[:64]))


def helpers() -> set[str]:
    return {thread.name for thread in enumerate_threads() if thread.name.startswith("scan")}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(usable_cores() < 2, reason="one core needs no help")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_scans_with_helpers_of_its_own() -> None:
    matrix = RNG.integers(-127, 128, (5 * MIN_PART, 16), dtype=np.int8)
    scales = np.ones(len(matrix), np.float32)
    before = scaled_dots(matrix, scales, matrix[:1])
    assert helpers()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # A child that waits for threads of its parent must not wait for ever.
        found = scaled_dots(matrix, scales, matrix[:1])
        os._exit(0 if np.array_equal(found, before) and helpers() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_both_kernels_of_half_floats_agree() -> None:
    matrix, query = drawn(1_000, 384), drawn(1, 384)[0]
    for kernel in (half_dots, half_dots_by_numpy):
        assert np.allclose(kernel(matrix.astype(np.float16), query), matrix @ query, atol=2e-4)


def test_no_vectors_have_no_dots() -> None:
    assert half_dots(np.empty((0, 8), np.float16), np.ones(8, np.float32)).shape == (0,)
    nothing = np.empty((0, 8), np.int8)
    found = scaled_dots(nothing, np.empty(0, np.float32), np.ones((2, 8), np.int8))
    assert found.shape == (2, 0)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
@pytest.mark.parametrize("count", [1, 500, 30_000])
def test_the_nearest_are_those_of_float32(tmp_path: Path, count: int, share: float) -> None:
    matrix, queries = drawn(count), drawn(3)
    allowed = RNG.random(count) < share
    found = vector_file.find_nearest(files(tmp_path, matrix), queries, allowed, 100)
    for (slots, cosines), query in zip(found, queries, strict=True):
        exact = np.where(allowed, matrix @ query, -2.0)
        expected = np.argsort(-exact)[: min(100, int(allowed.sum()))]
        assert len(slots) == len(expected)
        assert allowed[slots].all()
        # Half floats may order near equals differently; what they find is as near.
        assert np.allclose(cosines, exact[expected], atol=1e-3)
        assert len(set(slots) & set(expected)) >= 0.98 * len(expected)


def test_equal_vectors_are_found_in_the_order_of_their_slots(tmp_path: Path) -> None:
    matrix = np.repeat(drawn(1), 40_000, axis=0)
    allowed = np.ones(len(matrix), np.bool_)
    ((slots, _),) = vector_file.find_nearest(files(tmp_path, matrix), matrix[:1], allowed, 50)
    assert slots.tolist() == list(range(50))


@pytest.mark.parametrize("share", [0.3, 0.05])
def test_fewer_than_are_wanted_are_all_that_are_allowed(tmp_path: Path, share: float) -> None:
    matrix = drawn(400)
    matrix[
        :200
    ] *= -1.0  # Some are found with a negative cosine, and still before what is not allowed.
    allowed = np.arange(400) % round(1 / share) == 0
    ((slots, cosines),) = vector_file.find_nearest(
        files(tmp_path, matrix), matrix[:1], allowed, 200
    )
    assert sorted(slots) == np.flatnonzero(allowed).tolist()
    assert (np.diff(cosines) <= 0.0).all()


def test_a_vector_of_zeros_has_a_cosine_of_zero(tmp_path: Path) -> None:
    matrix = drawn(3)
    matrix[1] = 0.0
    ((slots, cosines),) = vector_file.find_nearest(
        files(tmp_path, matrix), matrix[:1], np.ones(3, np.bool_), 3
    )
    assert cosines[slots.tolist().index(1)] == 0.0


def test_an_entry_that_is_not_counted_may_be_written_over(tmp_path: Path) -> None:
    one, two, three = drawn(10), drawn(20), drawn(5)
    before = files(tmp_path, one)
    vector_file.append(tmp_path, 0, 10, two.astype(np.float16))
    vector_file.append(tmp_path, 0, 10, three.astype(np.float16))
    after = vector_file.map_files(tmp_path, 0, 64).first(15)
    assert np.array_equal(after.halves, np.concatenate([one, three]).astype(np.float16))
    assert np.array_equal(before.halves, one.astype(np.float16))


def test_files_grow_in_steps_and_a_mapping_outlives_what_is_added(tmp_path: Path) -> None:
    files(tmp_path, drawn(10))
    mapped = vector_file.map_files(tmp_path, 0, 64)
    assert mapped.capacity == vector_file.GROWTH
    added = drawn(100)
    vector_file.append(tmp_path, 0, 10, added.astype(np.float16))
    assert np.array_equal(mapped.halves[10:110], added.astype(np.float16))


def test_a_built_epoch_holds_every_block(tmp_path: Path) -> None:
    matrix = drawn(2 * vector_file.GROWTH + 7, 8).astype(np.float16)
    blobs = ((row.tobytes(),) for row in matrix)
    assert vector_file.build(tmp_path, 3, vector_file.iterate_blocks(blobs, 8)) == len(matrix)
    assert np.array_equal(vector_file.map_files(tmp_path, 3, 8).first(len(matrix)).halves, matrix)


def test_files_that_are_short_or_missing_are_not_whole(tmp_path: Path) -> None:
    assert vector_file.are_complete(tmp_path, 0, 0, 64)
    assert not vector_file.are_complete(tmp_path, 0, 1, 64)
    files(tmp_path, drawn(10))
    assert vector_file.are_complete(tmp_path, 0, 10, 64)
    with (tmp_path / "vectors-0.scale").open("rb+") as file:
        file.truncate(39)
    assert not vector_file.are_complete(tmp_path, 0, 10, 64)
    vector_file.remove(tmp_path, 0)
    assert not vector_file.are_complete(tmp_path, 0, 10, 64)
