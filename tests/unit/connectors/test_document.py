"""Spans: what they cover of a text, and the blanks at their ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.document import Span
from tests.support.memory import measure_peak

TEXT = "  nine\u3000hours \n"


@pytest.mark.parametrize(
    ("span", "trimmed"),
    [
        (Span(0, len(TEXT)), Span(2, 12)),
        (Span(2, 6), Span(2, 6)),
        (Span(4, 7), Span(4, 6)),
        (Span(6, 8), Span(7, 8)),
        (Span(0, 2), None),
        (Span(3, 3), None),
    ],
)
def test_blanks_at_the_ends_are_left_out(span: Span, trimmed: Span | None) -> None:
    assert span.trim(TEXT) == trimmed


@given(st.text("a \n\u00a0", max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_what_is_left_is_the_text_without_its_blanks(text: str, one: int, other: int) -> None:
    span = Span(min(one, other, len(text)), min(max(one, other), len(text)))
    trimmed = span.trim(text)
    assert (trimmed.of(text) if trimmed else "") == span.of(text).strip()
    assert trimmed is None or span.start <= trimmed.start < trimmed.end <= span.end


def test_a_long_span_is_trimmed_without_a_copy_of_it() -> None:
    text = f" {'word ' * 200_000} "
    assert measure_peak(lambda: Span(0, len(text)).trim(text)) < 10_000


def test_a_span_ends_behind_its_start() -> None:
    for start, end in ((2, 1), (-1, 2)):
        with pytest.raises(ValueError, match="not a span"):
            Span(start, end)
