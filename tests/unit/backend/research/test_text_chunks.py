"""Chunks of sources cover all that they say, in pieces that an embedder can read."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.research.references.text_chunks import (
    LEAST_COLUMNS,
    MOST_CHARACTERS,
    clean_chunk,
    measure_columns,
    split_source,
)

_PIECES = st.one_of(st.text(max_size=40), st.sampled_from(("It is. ", "是这样。", "\n", "\n\n", "x" * 900, "- a\n")))  # fmt: skip


@given(st.lists(_PIECES, max_size=20).map("".join))
def test_chunks_cover_a_source_in_order(text: str) -> None:
    spans = split_source(text)
    assert all(first.end <= second.start for first, second in pairwise(spans))
    assert all(0 < span.end - span.start <= MOST_CHARACTERS for span in spans)
    covered = "".join(span.of(text) for span in spans)
    assert "".join(covered.split()) == "".join(text.split())


def test_each_chunk_is_as_short_as_it_may_be() -> None:
    sentence = "The bike cage is next to the loading bay of the house."
    text = " ".join([sentence] * 5)
    first, second = (span.of(text) for span in split_source(text))
    assert first == f"{sentence} {sentence}"
    assert second == f"{sentence} {sentence} {sentence}"
    chinese = "自行车棚在装卸区的旁边，全体员工都可以使用它。"
    assert measure_columns(chinese) == 2 * len(chinese) < LEAST_COLUMNS
    assert [span.of(chinese * 4) for span in split_source(chinese * 4)] == [chinese * 2] * 2


@pytest.mark.parametrize(
    ("chunk", "compared"),
    [
        ("- **It** is [so](https://a.example),\n  says `code`.", "It is so, says code."),
        ("> > 1. It is\n> so.", "It is so."),
        ("## It __is__ snake_case", "It is snake_case"),
        ("***", ""),
    ],
)
def test_chunks_are_compared_without_markup(chunk: str, compared: str) -> None:
    assert clean_chunk(chunk) == compared
