"""Format sections as JSON for language models, within token budgets: excerpts for the selection, text for the answer."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from backend.search.models import DocumentNumbers, InferenceSection
from indexing.chunking.chunk import Chunk
from indexing.embedding.token_counting import CountTokens
from indexing.index import person_keys

RELEVANCE_CHUNKS = 3
LONG_TOKEN = 16
"""Characters; hardly any token is longer, so a text of so many for each token cannot fit."""
JSON_JOINT = 2
"""Tokens that joining two pieces of JSON may cost beyond the pieces."""
WIDEST_NUMBER = 9_999
SAMPLE_CHARACTERS = 400
"""Of each section's best chunk."""
SAFETY = 1.05
"""Factor on estimated token counts."""

NOTHING_FITS = (
    "The search found sections, but the first of them is longer than what may be read at once."
)


def to_json(value: object) -> str:
    """Serialize so that every script stays readable, and counts as few tokens."""
    return json.dumps(value, ensure_ascii=False)


def excerpt_for_model(
    section: InferenceSection, number: int, chunks: Sequence[Chunk]
) -> dict[str, object]:
    """Describe a section to the model that selects, by its number in the list."""
    return {
        "id": number,
        **describe_document(section),
        "content": "\n".join(chunk.text for chunk in chunks),
    }


def frame_for_model(section: InferenceSection, number: int) -> dict[str, object]:
    """Return `result_for_model` without its content."""
    fields = describe_document(section)
    metadata = fields.pop("metadata", None)
    frame = {"document": number, **fields, "url": section.best.chunk.link, "content": ""}
    return frame | ({"metadata": metadata} if metadata else {})


def result_for_model(section: InferenceSection, number: int) -> dict[str, object]:
    """Describe a section to the model that answers, under its document's citation number."""
    return frame_for_model(section, number) | {"content": section.text}


def results_for_model(
    sections: Sequence[InferenceSection], numbers: DocumentNumbers, note: str
) -> str:
    results = [
        result_for_model(section, numbers.assign(section.document_id)) for section in sections
    ]
    return to_json({"results": results} | ({"note": note} if note else {}))


def describe_document(section: InferenceSection) -> dict[str, object]:
    """Describe a section's document; what is not known is left out."""
    chunk = section.best.chunk
    fields: dict[str, object] = {
        "title": chunk.title,
        "source": chunk.source,
        "created_at": _format_time(chunk.created_at),
        "updated_at": _format_time(chunk.updated_at),
        "authors": [name for name in map(person_keys.display_name, chunk.owners) if name],
        "metadata": _group_tags(chunk.tags),
    }
    return {name: value for name, value in fields.items() if value}


def _format_time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="minutes") if moment else None


def _group_tags(tags: frozenset[str]) -> dict[str, str | list[str]]:
    values: dict[str, list[str]] = {}
    for tag in sorted(tags):
        key, _, value = tag.partition("=")
        values.setdefault(key, []).append(value)
    return {key: several[0] if len(several) == 1 else several for key, several in values.items()}


def trim_sections_by_tokens(
    sections: Iterable[InferenceSection], budget: int, count_tokens: CountTokens
) -> list[InferenceSection]:
    """Return the sections whose excerpts fit the budget together, in order.

    A section that does not fit is skipped; a shorter one after it may still fit.
    """
    fitting: list[InferenceSection] = []
    left = budget
    for section in sections:
        chunks = select_chunks_for_relevance(section)
        excerpt = to_json(excerpt_for_model(section, len(fitting), chunks))
        if len(excerpt) > left * LONG_TOKEN:
            continue
        cost = count_tokens(excerpt) + JSON_JOINT
        if cost <= left:
            fitting.append(section)
            left -= cost
    return fitting


def select_chunks_for_relevance(section: InferenceSection) -> tuple[Chunk, ...]:
    """Select the best chunk of a section and its neighbours, three at most."""
    best = section.best.chunk.position - section.start
    last_start = max(0, len(section.chunks) - RELEVANCE_CHUNKS)
    start = min(max(0, best - RELEVANCE_CHUNKS // 2), last_start)
    return section.chunks[start : start + RELEVANCE_CHUNKS]


@dataclass(frozen=True, slots=True)
class FittedSections:
    sections: tuple[InferenceSection, ...]
    text: str
    """Their JSON for the model."""


def fit_answer_budget(
    sections: Sequence[InferenceSection],
    budget: int,
    count_tokens: CountTokens,
    numbers: DocumentNumbers,
    note: str,
) -> FittedSections:
    """Keep as much of the sections as fits, in whole chunks; the text never exceeds `budget` tokens.

    Every section first gets its best chunk, in order; then, in order again, each grows around it
    as far as the budget allows. What does not fit is skipped. If not even an empty result fits, the
    text is empty.

    Counting tokens is what costs time here. So the tokens of a chunk are estimated from its bytes,
    at the rate of a sample, and only the whole text is counted, which must not exceed the budget.
    """
    framed = [(section, _count_frame(section, count_tokens)) for section in sections]
    available = float(budget - count_tokens(results_for_model([], numbers, note)))
    rate = _tokens_per_byte(sections, count_tokens)
    while kept := _fill(framed, available, rate):
        text = results_for_model(kept, numbers, note)
        tokens = count_tokens(text)
        if tokens <= budget:
            return FittedSections(kept, text)
        available *= budget / tokens / SAFETY
    text = results_for_model([], numbers, f"{NOTHING_FITS} {note}".strip() if sections else note)
    return FittedSections((), text if count_tokens(text) <= budget else "")


def _count_frame(section: InferenceSection, count_tokens: CountTokens) -> int:
    return count_tokens(to_json(frame_for_model(section, WIDEST_NUMBER))) + JSON_JOINT


def _tokens_per_byte(sections: Sequence[InferenceSection], count_tokens: CountTokens) -> float:
    sample = to_json([section.best.chunk.text[:SAMPLE_CHARACTERS] for section in sections])
    return SAFETY * max(1, count_tokens(sample)) / _count_bytes(sample)


def _fill(
    framed: Iterable[tuple[InferenceSection, int]], available: float, rate: float
) -> tuple[InferenceSection, ...]:
    """Return the parts of sections that come to at most `available` tokens at `rate` a byte."""
    kept: list[InferenceSection] = []
    for section, frame in framed:
        cost = frame + _estimate_tokens(section.best.chunk, rate)
        if cost <= available:
            kept.append(section)
            available -= cost
    grown: list[InferenceSection] = []
    for section in kept:
        part, cost = _grow(section, available, rate)
        grown.append(part)
        available -= cost
    return tuple(grown)


def _grow(
    section: InferenceSection, available: float, rate: float
) -> tuple[InferenceSection, float]:
    """Grow a section around its best chunk, and return what that costs beyond the chunk."""
    best, spent = section.best.chunk.position - section.start, 0.0
    reached = {1: best, -1: best}
    open_sides = [1, -1]
    for distance in range(1, len(section.chunks)):
        for side in tuple(open_sides):
            at = best + side * distance
            inside = 0 <= at < len(section.chunks)
            cost = _estimate_tokens(section.chunks[at], rate) if inside else 0.0
            if inside and spent + cost <= available:
                reached[side], spent = at, spent + cost
            else:
                open_sides.remove(side)
    return _slice(section, reached[-1], reached[1] + 1), spent


def _estimate_tokens(chunk: Chunk, rate: float) -> float:
    return rate * _count_bytes(chunk.text) + JSON_JOINT


def _count_bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _slice(section: InferenceSection, start: int, end: int) -> InferenceSection:
    chunks = section.chunks[start:end]
    if len(chunks) == len(section.chunks):
        return section
    keys = {chunk.key for chunk in chunks}
    hits = tuple(hit for hit in section.hits if hit.chunk.key in keys)
    return InferenceSection(chunks, section.best, hits)
