"""How much a model may be shown: sections for the choice, and text for the answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backend.search.models import InferenceSection
from backend.search.prompts import NOTHING_FITS, quote
from backend.search.result_format import (
    DocumentNumbers,
    excerpt,
    frame_for_model,
    text_for_model,
)
from indexing.chunking.chunk import Chunk
from indexing.embedding.token_counting import CountTokens

SHOWN_CHUNKS = 3
LONG_TOKEN = 16
"""Characters; hardly any token is longer, so that no text of so many times a budget can fit it."""
JOINT = 2
"""Tokens that joining two pieces of JSON may cost beyond the pieces."""
WIDEST_NUMBER = 9_999
SAMPLE_CHARACTERS = 400
"""Of each section's best chunk."""
SAFETY = 1.05
"""What is weighed, not counted, is taken to be so much heavier."""


def trim_sections_by_tokens(
    sections: Iterable[InferenceSection], budget: int, count_tokens: CountTokens
) -> list[InferenceSection]:
    """The sections that fit the budget, in order, counted as the model that selects is shown them.

    A section that does not fit is passed over; a shorter one after it may still fit.
    """
    fitting: list[InferenceSection] = []
    left = budget
    for section in sections:
        shown = quote(excerpt(section, len(fitting), shown_chunks(section)))
        if len(shown) > left * LONG_TOKEN:
            continue
        cost = count_tokens(shown) + JOINT
        if cost <= left:
            fitting.append(section)
            left -= cost
    return fitting


def shown_chunks(section: InferenceSection) -> tuple[Chunk, ...]:
    """At most three chunks of a section: the best one and its neighbours."""
    best = section.best.chunk.position - section.start
    last_start = max(0, len(section.chunks) - SHOWN_CHUNKS)
    start = min(max(0, best - SHOWN_CHUNKS // 2), last_start)
    return section.chunks[start : start + SHOWN_CHUNKS]


@dataclass(frozen=True, slots=True)
class Fitted:
    sections: tuple[InferenceSection, ...]
    text: str
    """Their JSON for the model."""


def fit_answer_budget(
    sections: Sequence[InferenceSection],
    budget: int,
    count_tokens: CountTokens,
    numbers: DocumentNumbers,
    note: str,
) -> Fitted:
    """As much of the sections as fits, in whole chunks; the text never exceeds `budget` tokens.

    Every section first gets its best chunk, in order; then, in order again, each grows around it
    as far as the budget reaches. What does not fit is passed over. When not even an empty result
    fits, the text is empty.

    Counting is what costs time here. So chunks are weighed by their bytes, at the tokens a byte
    of a sample of them, and only the whole text is counted, which is what the promise is about.
    """
    priced = [(section, _frame_cost(section, count_tokens)) for section in sections]
    room = float(budget - count_tokens(text_for_model([], numbers, note)))
    rate = _tokens_per_byte(sections, count_tokens)
    while kept := _fill(priced, room, rate):
        text = text_for_model(kept, numbers, note)
        tokens = count_tokens(text)
        if tokens <= budget:
            return Fitted(kept, text)
        room *= budget / tokens / SAFETY
    text = text_for_model([], numbers, f"{NOTHING_FITS} {note}".strip() if sections else note)
    return Fitted((), text if count_tokens(text) <= budget else "")


def _frame_cost(section: InferenceSection, count_tokens: CountTokens) -> int:
    return count_tokens(quote(frame_for_model(section, WIDEST_NUMBER))) + JOINT


def _tokens_per_byte(sections: Sequence[InferenceSection], count_tokens: CountTokens) -> float:
    sample = quote([section.best.chunk.text[:SAMPLE_CHARACTERS] for section in sections])
    return SAFETY * max(1, count_tokens(sample)) / _bytes(sample)


def _fill(
    priced: Iterable[tuple[InferenceSection, int]], room: float, rate: float
) -> tuple[InferenceSection, ...]:
    """The sections, and what of each, that come to at most `room` tokens at `rate` a byte."""
    kept: list[InferenceSection] = []
    for section, frame in priced:
        cost = frame + _cost(section.best.chunk, rate)
        if cost <= room:
            kept.append(section)
            room -= cost
    grown: list[InferenceSection] = []
    for section in kept:
        part, cost = _grown(section, room, rate)
        grown.append(part)
        room -= cost
    return tuple(grown)


def _grown(section: InferenceSection, room: float, rate: float) -> tuple[InferenceSection, float]:
    """As much of a section around its best chunk as fits, and what it costs beyond that chunk."""
    best, spent = section.best.chunk.position - section.start, 0.0
    reached = {1: best, -1: best}
    open_sides = [1, -1]
    for distance in range(1, len(section.chunks)):
        for side in tuple(open_sides):
            at = best + side * distance
            inside = 0 <= at < len(section.chunks)
            cost = _cost(section.chunks[at], rate) if inside else 0.0
            if inside and spent + cost <= room:
                reached[side], spent = at, spent + cost
            else:
                open_sides.remove(side)
    return _part(section, reached[-1], reached[1] + 1), spent


def _cost(chunk: Chunk, rate: float) -> float:
    return rate * _bytes(chunk.text) + JOINT


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _part(section: InferenceSection, start: int, end: int) -> InferenceSection:
    chunks = section.chunks[start:end]
    if len(chunks) == len(section.chunks):
        return section
    keys = {chunk.key for chunk in chunks}
    ranked = tuple(one for one in section.ranked if one.chunk.key in keys)
    return InferenceSection(chunks, section.best, ranked)
