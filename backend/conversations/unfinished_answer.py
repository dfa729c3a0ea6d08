"""What is kept of an answer that did not come to its end: what was said, with the citations in it."""

from collections.abc import Iterable, Mapping
from typing import Any

from backend.store.chat.messages import Json

_UNCHECKED = {"quote": "", "section": 0, "span": [0, 0], "score": 0.0, "verdict": "unchecked"}
"""Citations are checked when an answer is complete."""


def make_unfinished_answer(
    text: str, citations: Iterable[Json], selections: Iterable[Json] = ()
) -> dict[str, Any] | None:
    """Return what was said in the form of an answer; None where it cites nothing.

    Of a selection nothing is kept but what is of a cited document: the answer may be shown to who may read these.

    Args:
        citations: the data of the `citation` events. One comes before its marker, which may not have been written any more.
        selections: the data of the `selected` events, which say where in a document the model was led, and whose it is.
    """
    said = [one for one in citations if f"[{one['number']}]" in text]
    if not said:
        return None
    best = _find_best(selections)
    shown = [(one, best.get(one["document_id"])) for one in said]
    return {
        "answer": text,
        "model": None,
        "citations": [_make_citation(one, passage) for one, passage in shown],
        "documents": [_make_document(one, passage) for one, passage in shown],
        "seconds": 0,
    }


def _find_best(selections: Iterable[Json]) -> Mapping[str, Json]:
    """Return the best passage of each document, as the last selection that has the document orders them."""
    best: dict[str, Json] = {}
    for selection in selections:
        best.update({one["document_id"]: one for one in reversed(selection["results"])})
    return best


def _make_citation(cited: Json, passage: Json | None) -> Json:
    if passage is None:
        return {**cited, **_UNCHECKED}
    place = {"section": passage["section"], "span": passage["span"]}
    return {**cited, **_UNCHECKED, "quote": passage["content"], **place}


def _make_document(cited: Json, passage: Json | None) -> Json:
    if passage is None:
        return {**cited, "cited": True, "sections": []}
    place = {name: passage[name] for name in ("section", "span", "heading_path")}
    origin = {name: passage[name] for name in ("source", "updated_at")}
    return {**cited, **origin, "cited": True, "sections": [place]}
