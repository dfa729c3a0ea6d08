"""Vectors are computed once, for as long as they are kept."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.vector_cache import VectorCache
from indexing.runtime.deadline import Deadline, DeadlineExceededError


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[list[str]] = []

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.embedded.append(list(texts))
        return super().embed_queries(texts, deadline)


def soon() -> Deadline:
    return Deadline.after(30)


def test_only_new_texts_are_computed_and_each_once() -> None:
    embedder = CountingEmbedder()
    cache = VectorCache(embedder)
    cache.embed_queries(["a", "b", "a"], soon())
    cache.embed_queries(["b", "c"], soon())
    cache.embed_queries(["a", "b", "c"], soon())
    assert embedder.embedded == [["a", "b"], ["c"]]


def test_what_was_used_least_recently_gives_way() -> None:
    embedder = CountingEmbedder()
    cache = VectorCache(embedder, most=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cache.embed_queries([text], soon())
    assert embedder.embedded == [["a"], ["b"], ["c"], ["b"]]


def test_more_texts_than_are_kept_are_all_returned() -> None:
    cache = VectorCache(HashingEmbedder(), most=1)
    assert len(cache.embed_queries(["a", "b", "c"], soon())) == 3


def test_what_could_not_be_embedded_is_tried_again() -> None:
    class Late(CountingEmbedder):
        def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
            super().embed_queries(texts, deadline)
            if len(self.embedded) == 1:
                raise DeadlineExceededError
            return HashingEmbedder.embed_queries(self, texts, deadline)

    embedder = Late()
    cache = VectorCache(embedder)
    with pytest.raises(DeadlineExceededError):
        cache.embed_queries(["a"], soon())
    cache.embed_queries(["a"], soon())
    assert embedder.embedded == [["a"], ["a"]]


@given(st.lists(st.lists(st.sampled_from("abcdef")), max_size=6), st.integers(1, 4))
def test_the_vectors_are_those_of_the_embedder(calls: list[list[str]], most: int) -> None:
    embedder, cache = HashingEmbedder(), VectorCache(HashingEmbedder(), most)
    for texts in calls:
        expected = embedder.embed_queries(texts, soon())
        found = cache.embed_queries(texts, soon())
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
