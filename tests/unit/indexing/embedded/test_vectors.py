"""Byte scans are exact, and what is rescored is what float32 would have found."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from indexing.embedded import vectors
from indexing.embedded.dots import SHARE, by_numkong, by_numpy, dots, half_dots, half_dots_by_numpy
from indexing.embedding import Vectors
from tests.support.chunks import unit

RNG = np.random.default_rng(5)


def drawn(count: int, dimension: int = 64) -> Vectors:
    return unit(RNG.standard_normal((count, dimension)))


def files(folder: Path, matrix: Vectors) -> vectors.VectorFiles:
    vectors.append(folder, 0, 0, matrix.astype(np.float16))
    return vectors.mapped(folder, 0, matrix.shape[1]).first(len(matrix))


@given(
    arrays(np.int8, st.tuples(st.integers(1, 40), st.just(33))),
    arrays(np.int8, st.tuples(st.integers(1, 9), st.just(33))),
)
def test_both_kernels_are_exact(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.int8]],
    queries: np.ndarray[tuple[int, int], np.dtype[np.int8]],
) -> None:
    expected = queries.astype(np.int64) @ matrix.astype(np.int64).T
    assert np.array_equal(by_numkong(matrix, queries), expected)
    assert np.array_equal(by_numpy(matrix, queries), expected)


def test_the_kernel_without_simd_is_exact_over_its_blocks() -> None:
    matrix = RNG.integers(-127, 128, (20_000, 1_024), dtype=np.int8)
    matrix[:2] = 127
    queries = np.full((1, 1_024), 127, dtype=np.int8)
    found = by_numpy(matrix, queries)
    assert found[0, 0] == 127 * 127 * 1_024
    assert np.array_equal(found, by_numkong(matrix, queries))


@pytest.mark.parametrize("queries", [1, 3])
def test_a_scan_of_many_is_shared_between_threads(queries: int) -> None:
    matrix = RNG.integers(-127, 128, (3 * SHARE + 5, 16), dtype=np.int8)
    found = dots(matrix, matrix[-queries:])
    assert np.array_equal(found, by_numpy(matrix, matrix[-queries:]))


def test_both_kernels_of_half_floats_agree() -> None:
    matrix, query = drawn(1_000, 384), drawn(1, 384)[0]
    for kernel in (half_dots, half_dots_by_numpy):
        assert np.allclose(kernel(matrix.astype(np.float16), query), matrix @ query, atol=2e-4)


def test_no_vectors_have_no_dots() -> None:
    assert half_dots(np.empty((0, 8), np.float16), np.ones(8, np.float32)).shape == (0,)
    assert dots(np.empty((0, 8), np.int8), np.ones((2, 8), np.int8)).shape == (2, 0)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
@pytest.mark.parametrize("count", [1, 500, 30_000])
def test_the_nearest_are_those_of_float32(tmp_path: Path, count: int, share: float) -> None:
    matrix, queries = drawn(count), drawn(3)
    allowed = RNG.random(count) < share
    found = vectors.nearest(files(tmp_path, matrix), queries, allowed, 100)
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
    ((slots, _),) = vectors.nearest(files(tmp_path, matrix), matrix[:1], allowed, 50)
    assert slots.tolist() == list(range(50))


def test_an_entry_that_is_not_counted_may_be_written_over(tmp_path: Path) -> None:
    one, two, three = drawn(10), drawn(20), drawn(5)
    before = files(tmp_path, one)
    vectors.append(tmp_path, 0, 10, two.astype(np.float16))
    vectors.append(tmp_path, 0, 10, three.astype(np.float16))
    after = vectors.mapped(tmp_path, 0, 64).first(15)
    assert np.array_equal(after.halves, np.concatenate([one, three]).astype(np.float16))
    assert np.array_equal(before.halves, one.astype(np.float16))


def test_files_grow_in_steps_and_a_mapping_outlives_what_is_added(tmp_path: Path) -> None:
    files(tmp_path, drawn(10))
    mapped = vectors.mapped(tmp_path, 0, 64)
    assert mapped.capacity == vectors.GROWTH
    added = drawn(100)
    vectors.append(tmp_path, 0, 10, added.astype(np.float16))
    assert np.array_equal(mapped.halves[10:110], added.astype(np.float16))


def test_a_built_epoch_holds_every_block(tmp_path: Path) -> None:
    matrix = drawn(2 * vectors.GROWTH + 7, 8).astype(np.float16)
    blobs = ((row.tobytes(),) for row in matrix)
    assert vectors.build(tmp_path, 3, vectors.blocks_of(blobs, 8)) == len(matrix)
    assert np.array_equal(vectors.mapped(tmp_path, 3, 8).first(len(matrix)).halves, matrix)


def test_files_that_are_short_or_missing_are_not_whole(tmp_path: Path) -> None:
    assert vectors.are_whole(tmp_path, 0, 0, 64)
    assert not vectors.are_whole(tmp_path, 0, 1, 64)
    files(tmp_path, drawn(10))
    assert vectors.are_whole(tmp_path, 0, 10, 64)
    with (tmp_path / "vectors-0.scale").open("rb+") as file:
        file.truncate(39)
    assert not vectors.are_whole(tmp_path, 0, 10, 64)
    vectors.remove(tmp_path, 0)
    assert not vectors.are_whole(tmp_path, 0, 10, 64)
