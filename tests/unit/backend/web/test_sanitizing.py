"""Texts are cut for a line."""

from backend.web.sanitizing import shorten


def test_shortened_is_one_line_of_at_most_so_many_characters() -> None:
    assert shorten("  a\n b\t\tc ", 20) == "a b c"
    assert shorten("abcdefgh", 5) == "abcd…"
    assert len(shorten("x" * 10_000_000, 200)) == 200
