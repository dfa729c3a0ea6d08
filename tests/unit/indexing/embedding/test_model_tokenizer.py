"""A text's tokens are read once: they are counted, and kept until it is embedded."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer

from indexing.embedding.model_tokenizer import CACHED_LENGTHS, MAX_CACHED_TEXTS, ModelTokenizer
from tests.support.models import write_tiny_bert

CHUNK = "travel is approved by the manager " * 5
"""With 170 characters long enough to be remembered."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_bert(folder)
    return folder


class Counting(ModelTokenizer):
    """Notes how many texts it has read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Tokenizer.from_file(str(folder / "tokenizer.json")))
        self.read = 0

    def _tokenize(self, texts: Sequence[str]) -> list[Encoding]:
        self.read += len(texts)
        return super()._tokenize(texts)


def test_what_was_counted_is_not_read_again_to_be_embedded(folder: Path) -> None:
    tokens = Counting(folder)
    assert tokens.count_tokens([CHUNK, CHUNK + "manager"]) == [
        32,
        33,
    ]  # six words, five times, and two
    assert [len(ids) for ids in tokens.encode([CHUNK + "manager", CHUNK], 100)] == [33, 32]
    assert tokens.read == 2


def test_it_is_forgotten_with_that(folder: Path) -> None:
    tokens = Counting(folder)
    tokens.count_tokens([CHUNK])
    for _ in range(2):
        tokens.encode([CHUNK], 100)
    assert tokens.read == 2


def test_short_and_very_long_texts_are_not_kept(folder: Path) -> None:
    tokens = Counting(folder)
    for text in ("travel", "travel " * CACHED_LENGTHS.stop):
        tokens.count_tokens([text])
        tokens.count_tokens([text])
    assert tokens.read == 4


def test_of_too_many_the_first_are_forgotten(folder: Path) -> None:
    tokens = Counting(folder)
    texts = [f"{CHUNK}{number}" for number in range(MAX_CACHED_TEXTS + 1)]
    tokens.count_tokens(texts)
    tokens.encode(texts[1:], 100)
    assert tokens.read == len(texts)
    tokens.encode(texts[:1], 100)
    assert tokens.read == len(texts) + 1


@given(texts=st.lists(st.text(min_size=90, max_size=110)), limit=st.integers(3, 40))
def test_the_tokens_are_the_same_however_they_were_come_by(
    folder: Path, texts: list[str], limit: int
) -> None:
    counted, fresh = Counting(folder), Counting(folder)
    counted.count_tokens(texts)
    assert [ids.tolist() for ids in counted.encode(texts, limit)] == [
        ids.tolist() for ids in fresh.encode(texts, limit)
    ]
