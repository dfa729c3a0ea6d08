"""Counting and cutting by tokens."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer

from indexing.embedding.token_counting import (
    CACHED_LENGTHS,
    MAX_CACHED_TEXTS,
    EstimatedTokenCounter,
    ModelTokenizer,
    chat_token_counter,
    estimated_ends,
    estimated_tokens,
)
from tests.support.memory import measure_peak
from tests.support.models import write_tiny_bert


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        # chap-ter, three digits and one more, a mark
        ("chapter 1234.", 2 + 2 + 1),
        # The blank before a word costs nothing, an indentation one token.
        ("if x:\n    y()", 1 + 1 + 1 + 1 + 1 + 2),
        # Five ideographs count six, and the full stop one.
        ("年假十五天。", 7),
        ("E1042", 5),
        ("\U0001f600!", 2 + 1),
    ],
)
def test_the_estimate_by_hand(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


# Counted with tiktoken 0.14, o200k_base.
COUNTED = [
    ("The deposit is paid back within thirty days, less the cost of repairs.", 15),
    ("def mean(values: list[float]) -> float:\n    return sum(values) / len(values)\n", 20),
    ("员工每年享有十五天带薪年假，须提前两周申请。", 18),
    ("有給休暇は年に二十日で、二週間前までに申請します。", 21),
    ("연차 휴가는 일 년에 십오 일입니다.", 13),
    ("Отпуск запрашивают за две недели.", 10),
    ("Error E-1042 in file cfg_v2.3.json (0x7f3a91c4)", 24),
    ("dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcw==", 24),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_the_estimate_is_never_below_the_count(text: str, tokens: int) -> None:
    assert tokens <= estimated_tokens(text) <= 3 * tokens


@given(st.text(max_size=80))
def test_the_ends_of_estimated_tokens_ascend_to_the_last_visible_character(text: str) -> None:
    ends = estimated_ends(text)
    assert ends == sorted(ends)
    assert ends[-1:] == [len(text.removesuffix(" "))] or not text.strip(" ") or text.endswith(" ")


@given(
    st.text(st.one_of(st.sampled_from("aB7 \n\t-_日本\U00020000"), st.characters()), max_size=80)
)
def test_as_many_tokens_are_estimated_as_there_are_ends(text: str) -> None:
    assert estimated_tokens(text) == len(estimated_ends(text))


@pytest.mark.parametrize("damaged", ["", "not a vocabulary"])
def test_a_missing_or_damaged_vocabulary_costs_one_warning(
    damaged: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if damaged:
        (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_text(damaged)
    with caplog.at_level(logging.WARNING):
        counters = [chat_token_counter(tmp_path) for _ in range(2)]
    assert counters == [estimated_tokens, estimated_tokens]
    assert len(caplog.records) == 1
    assert "TIKTOKEN_CACHE_DIR" in caplog.text


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

    def _tokenize(self, texts: Sequence[str]) -> Iterator[Encoding]:
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


def test_the_tokenizer_is_given_some_texts_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, tokenizer = (
        Counting(folder),
        Mock(wraps=Tokenizer.from_file(str(folder / "tokenizer.json"))),
    )
    monkeypatch.setattr(tokens, "_tokenizer", tokenizer)
    texts = [f"travel {'manager ' * (number % 3)}" for number in range(600)]
    counts = tokens.count_tokens(texts)
    assert counts == [Counting(folder).count_tokens([text])[0] for text in texts[:3]] * 200
    given = [len(call.args[0]) for call in tokenizer.encode_batch_fast.call_args_list]
    assert given == [256, 256, 88]


def test_the_ends_of_many_tokens_take_little_memory(folder: Path) -> None:
    tokens = Counting(folder)
    text = "travel " * 80_000
    # A list of so many numbers takes 3.2 megabytes, the ends themselves 0.3.
    assert measure_peak(lambda: tokens.token_ends(text)) < 2_000_000
    assert measure_peak(lambda: EstimatedTokenCounter().token_ends(text)) < 2_000_000
