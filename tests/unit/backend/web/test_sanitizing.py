"""Control characters are shown, and take no effect."""

from hypothesis import given
from hypothesis import strategies as st

from backend.web.sanitizing import REPLACEMENT, replace_controls, shorten


@given(st.text())
def test_every_character_stays_at_its_place(text: str) -> None:
    shown = replace_controls(text)
    assert len(shown) == len(text)
    assert all(now in (before, REPLACEMENT) for before, now in zip(text, shown, strict=True))


def test_what_reorders_or_steers_is_replaced() -> None:
    assert replace_controls("a\u202eb\u2066c\x1b[2Jd\x00e\x9bf") == "a�b�c�[2Jd�e�f"


def test_lines_tabs_and_the_marks_of_hebrew_stay() -> None:
    assert replace_controls("a\n\tb \u200fשלום\u200e") == "a\n\tb \u200fשלום\u200e"


def test_shortened_is_one_line_of_at_most_so_many_characters() -> None:
    assert shorten("  a\n b\t\tc ", 20) == "a b c"
    assert shorten("abcdefgh", 5) == "abcd…"
    assert len(shorten("x" * 10_000_000, 200)) == 200
