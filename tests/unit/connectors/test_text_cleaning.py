"""Control characters are shown, and take no effect."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.text_cleaning import REPLACEMENT, replace_controls


@given(st.text())
def test_every_character_stays_at_its_place(text: str) -> None:
    shown = replace_controls(text)
    assert len(shown) == len(text)
    assert all(now in (before, REPLACEMENT) for before, now in zip(text, shown, strict=True))


def test_what_reorders_or_steers_is_replaced() -> None:
    assert replace_controls("a\u202eb\u2066c\x1b[2Jd\x00e\x9bf") == "a�b�c�[2Jd�e�f"
    assert replace_controls("a\u061cb\ufff9c\ud800d") == "a�b�c�d"


def test_lines_tabs_and_the_marks_of_hebrew_stay() -> None:
    assert replace_controls("a\n\tb \u200fשלום\u200e") == "a\n\tb \u200fשלום\u200e"
