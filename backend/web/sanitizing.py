"""Make texts of documents and of models safe to show."""

from connectors.text_cleaning import replace_controls


def shorten(text: str, length: int) -> str:
    """Return the text on one line, cut to `length` characters."""
    line = " ".join(replace_controls(text[: 4 * length]).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
