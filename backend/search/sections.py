"""Sections for who reads them: the best, read with what surrounds them, merged, and written within a token budget."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from backend.search.models import DocumentNumbers, InferenceSection
from connectors.access import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.token_counting import CountTokens
from indexing.index import person_keys
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

MAX_SECTIONS = 10
CHUNK_TOKENS = 512
"""Chunks are never longer, whatever the embedder could read."""
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

_SectionAt: TypeAlias = tuple[int, InferenceSection]
"""A section and its place among the sections."""


class ContextSize(Enum):
    """How much text around a section is read."""

    AS_IS = "as_is"
    ADJACENT = "adjacent"
    WIDE = "wide"

    @property
    def tokens(self) -> int:
        """Approximately, before the section and again after it."""
        return {ContextSize.AS_IS: 0, ContextSize.ADJACENT: 1_000, ContextSize.WIDE: 2_500}[self]


@dataclass(frozen=True, slots=True)
class SelectedSection:
    section: InferenceSection
    context: ContextSize


def select_best(
    sections: Sequence[InferenceSection], context: ContextSize
) -> tuple[SelectedSection, ...]:
    """Select the best by score, without a model."""
    return tuple(SelectedSection(section, context) for section in sections[:MAX_SECTIONS])


def expand_section_with_context(
    selected: Sequence[SelectedSection],
    index: Index,
    readers: Readers,
    deadline: Deadline,
    chunk_tokens: int = CHUNK_TOKENS,
) -> list[InferenceSection]:
    """Read the selected sections with their neighbors in one call to the index.

    The section itself is read again with what surrounds it, so that its text is of one version of
    the document and of what the asker may read now: a section whose best chunk is no longer
    there, or no longer readable, is left out.

    Args:
        chunk_tokens: the maximum length of a chunk, to convert tokens of context to whole chunks.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    if not selected:
        return []
    ranges = [_range_to_read(one, chunk_tokens) for one in selected]
    read = index.chunks(ranges, readers, deadline)
    sections = [_rebuild(one.section, chunks) for one, chunks in zip(selected, read, strict=True)]
    return [section for section in sections if section]


def _range_to_read(selected: SelectedSection, chunk_tokens: int) -> ChunkRange:
    section, reach = selected.section, _chunks_of_context(selected.context, chunk_tokens)
    return ChunkRange(section.document_id, max(0, section.start - reach), section.end + reach)


def _chunks_of_context(context: ContextSize, chunk_tokens: int) -> int:
    """Return how many chunks are read on either side."""
    return math.ceil(context.tokens / min(chunk_tokens, CHUNK_TOKENS))


def _rebuild(found: InferenceSection, chunks: Iterable[Chunk]) -> InferenceSection | None:
    run = _run_around(found.best.chunk.position, chunks)
    by_key = {chunk.key: chunk for chunk in run}
    hits = tuple(
        replace(hit, chunk=by_key[hit.chunk.key]) for hit in found.hits if hit.chunk.key in by_key
    )
    return InferenceSection(run, hits[0], hits) if hits else None


def _run_around(position: int, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Return the chunks without gaps around `position`; none if that one is missing."""
    by_position = {chunk.position: chunk for chunk in chunks}
    if position not in by_position:
        return ()
    start, end = position, position + 1
    while start - 1 in by_position:
        start -= 1
    while end in by_position:
        end += 1
    return tuple(by_position[place] for place in range(start, end))


def merge_overlapping_sections(sections: Sequence[InferenceSection]) -> list[InferenceSection]:
    """Join sections of one document that overlap or touch, at the place of the earliest."""
    in_reading_order = sorted(
        enumerate(sections), key=lambda pair: (pair[1].document_id, pair[1].start)
    )
    merged = map(_merge_group, _group_overlapping(in_reading_order))
    return [section for _, section in sorted(merged)]


def _group_overlapping(sections: Iterable[_SectionAt]) -> Iterator[list[_SectionAt]]:
    group: list[_SectionAt] = []
    end = 0
    for place, section in sections:
        if group and (section.document_id != group[0][1].document_id or section.start > end):
            yield group
            group = []
        end = max(end, section.end) if group else section.end
        group.append((place, section))
    if group:
        yield group


def _merge_group(group: list[_SectionAt]) -> _SectionAt:
    if len(group) == 1:
        return group[0]
    chunks = {chunk.position: chunk for _, section in group for chunk in section.chunks}
    found = {hit.chunk.key: hit for _, section in group for hit in section.hits}
    hits = tuple(sorted(found.values(), key=lambda hit: (-hit.evidence.exact, -hit.score)))
    in_reading_order = tuple(chunks[position] for position in sorted(chunks))
    return min(place for place, _ in group), InferenceSection(in_reading_order, hits[0], hits)


def to_json(value: object) -> str:
    """Serialize so that every script stays readable, and counts as few tokens."""
    return json.dumps(value, ensure_ascii=False)


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
