"""What is kept of an answer that did not come to its end: what was said, with the citations in it."""

from collections.abc import Iterable
from typing import Any

from backend.store.chat.messages import Json

_UNCHECKED = {"quote": "", "section": 0, "span": [0, 0], "score": 0.0, "verdict": "unchecked"}
"""Citations are checked when an answer is complete."""


def make_unfinished_answer(text: str, citations: Iterable[Json]) -> dict[str, Any] | None:
    """Return what was said in the form of an answer; None where it cites nothing.

    Args:
        citations: the data of the `citation` events. One comes before its marker, which may not have been written any more.
    """
    said = [{**one, **_UNCHECKED} for one in citations if f"[{one['number']}]" in text]
    return {"answer": text, "model": None, "citations": said, "seconds": 0} if said else None
