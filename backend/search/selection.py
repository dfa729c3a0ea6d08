"""Select the sections to read and how much text around each, read them with it, and merge those that then overlap."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from backend.search.budget import excerpt_for_model, select_chunks_for_relevance
from backend.search.llm_protocol import Complete, CompletionError
from backend.search.models import InferenceSection
from backend.search.prompts import selection_prompt, strip_reasoning
from connectors.access import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

MAX_SECTIONS = 10
FEW_SECTIONS = 3
"""With so few, all are read and the model is not asked."""
MIN_EXACT_SECTIONS = 3
"""So many exact matches are kept whatever the model chooses, and more where there is space."""
MAX_JSON_STARTS = 100
"""Positions of an answer at which JSON is tried; each that is not JSON may cost a deep recursion."""

CHUNK_TOKENS = 512
"""Chunks are never longer, whatever the embedder could read."""

_JSON_START = re.compile(r"[\[{]")

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


@dataclass(frozen=True, slots=True)
class SectionChoice:
    """A model's choice for the section with this number; no context means not relevant."""

    number: int
    context: ContextSize | None


def select_best(
    sections: Sequence[InferenceSection], context: ContextSize
) -> tuple[SelectedSection, ...]:
    """Select the best by score, without a model."""
    return tuple(SelectedSection(section, context) for section in sections[:MAX_SECTIONS])


def select_sections_for_expansion(
    queries: Sequence[str],
    sections: Sequence[InferenceSection],
    complete: Complete,
    deadline: Deadline,
) -> tuple[SelectedSection, ...]:
    """Let the model choose, in one call, up to ten sections and how much to read around each.

    Sections that it calls not relevant or does not name are left out. Those that hold exactly what
    the asker wrote stay, at least as they are, and come first.

    Args:
        queries: what was searched, the asker's own message first.

    Raises:
        CompletionError: the model gave no answer, or one that names no existing section.
    """
    excerpts = [
        excerpt_for_model(section, number, select_chunks_for_relevance(section))
        for number, section in enumerate(sections)
    ]
    answer = complete(selection_prompt(queries, excerpts, MAX_SECTIONS), deadline)
    return _apply_choices(sections, parse_choices(answer, len(sections)))


def _apply_choices(
    sections: Sequence[InferenceSection], choices: Sequence[SectionChoice]
) -> tuple[SelectedSection, ...]:
    contexts = {choice.number: choice.context for choice in choices}
    chosen = [number for number, context in contexts.items() if context][:MAX_SECTIONS]
    exact = _keep_exact_matches(sections, chosen)
    order = exact + [number for number in chosen if number not in exact]
    return tuple(SelectedSection(sections[n], contexts.get(n) or ContextSize.AS_IS) for n in order)


def _keep_exact_matches(sections: Sequence[InferenceSection], chosen: Sequence[int]) -> list[int]:
    """Return the exact matches that were chosen, and the best of the others where there is space."""
    exact = [n for n, section in enumerate(sections) if section.best.evidence.exact]
    free = max(MIN_EXACT_SECTIONS, MAX_SECTIONS - len(chosen))
    kept = [n for n in exact if n not in chosen][:free]
    return sorted([*kept, *(n for n in exact if n in chosen)])


def parse_choices(answer: str, sections: int) -> list[SectionChoice]:
    """Parse a model's choices among sections numbered from 0; the first choice for each counts.

    Raises:
        CompletionError: no JSON of the expected form, or none of its numbers exists.
    """
    entries = _find_entries(strip_reasoning(answer))
    known: dict[int, SectionChoice] = {}
    for choice in map(_parse_choice, entries):
        if choice and 0 <= choice.number < sections:
            known.setdefault(choice.number, choice)
    if entries and not known:
        raise CompletionError("the language model chose sections that do not exist")
    return list(known.values())


def _parse_choice(entry: object) -> SectionChoice | None:
    match entry:
        case {"id": bool()}:
            return None
        case {"id": int(number), **rest}:
            return SectionChoice(number, _parse_context(rest.get("read")))
        case {"id": str(digits), **rest} if digits.isdecimal() and len(digits) < 6:
            return SectionChoice(int(digits), _parse_context(rest.get("read")))
        case _:
            return None


def _parse_context(value: object) -> ContextSize | None:
    match str(value).lower().replace(" ", "_").replace("-", "_"):
        case "not_relevant":
            return None
        case "adjacent":
            return ContextSize.ADJACENT
        case "wide":
            return ContextSize.WIDE
        case _:
            return ContextSize.AS_IS


def _find_entries(answer: str) -> list[object]:
    for value in _json_values(answer):
        match value:
            case {"sections": [*entries]}:
                return entries
            case [{"id": _}, *_] as entries:
                return list(entries)
            case _:
                pass
    raise CompletionError("the language model chose sections in an unknown format")


def _json_values(text: str) -> Iterator[object]:
    """Yield the JSON objects and lists in `text`, whatever is written around them."""
    decoder, start = json.JSONDecoder(), 0
    for _ in range(MAX_JSON_STARTS):
        found = _JSON_START.search(text, start)
        if not found:
            return
        try:
            value, start = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            start = found.end()
        else:
            yield value


def expand_section_with_context(
    selected: Sequence[SelectedSection],
    index: Index,
    readers: Readers,
    deadline: Deadline,
    chunk_tokens: int = CHUNK_TOKENS,
) -> list[InferenceSection]:
    """Read the selected sections with their neighbours in one call to the index.

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
    """The number of chunks to read on either side."""
    return math.ceil(context.tokens / min(chunk_tokens, CHUNK_TOKENS))


def _rebuild(found: InferenceSection, chunks: Iterable[Chunk]) -> InferenceSection | None:
    run = _run_around(found.best.chunk.position, chunks)
    by_key = {chunk.key: chunk for chunk in run}
    hits = tuple(
        replace(hit, chunk=by_key[hit.chunk.key]) for hit in found.hits if hit.chunk.key in by_key
    )
    return InferenceSection(run, hits[0], hits) if hits else None


def _run_around(position: int, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """The chunks without gaps around `position`; none if that one is missing."""
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
