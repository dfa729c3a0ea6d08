"""Read selected sections with the text around them, and merge those that then overlap."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from backend.search.models import InferenceSection
from backend.search.selection import ContextSize, SelectedSection
from connectors.access import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

CHUNK_TOKENS = 512
"""Chunks are never longer, whatever the embedder could read."""

_SectionAt: TypeAlias = tuple[int, InferenceSection]
"""A section and its place among the sections."""


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
