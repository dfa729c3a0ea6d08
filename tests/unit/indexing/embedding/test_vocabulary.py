"""Which words a vocabulary has whole."""

import pytest

from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.vocabulary import is_one_token
from tests.support.models import minilm


@pytest.mark.parametrize("word", ["vacation", "resign", "hastings"])
def test_a_common_word_is_one_token(word: str) -> None:
    assert is_one_token(minilm(), word)


@pytest.mark.parametrize("word", ["warrenty", "perfomance", "scaner"])
def test_a_misspelled_word_is_several(word: str) -> None:
    assert not is_one_token(minilm(), word)


def test_without_a_vocabulary_no_word_is_known() -> None:
    embedder = HashingEmbedder()
    assert len(embedder.token_ends("resign")) == 1
    assert not is_one_token(embedder, "resign")
