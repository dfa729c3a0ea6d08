"""Selected sections with as much of their documents around them as is to be read."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from backend.search.models import InferenceSection
from backend.search.selection import Reading, Selection
from connectors.document import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

CHUNK_TOKENS = 512
"""Chunks are never longer, whatever the embedder could read."""


def expand_section_with_context(
    selections: Sequence[Selection],
    index: Index,
    readers: Readers,
    deadline: Deadline,
    chunk_tokens: int = CHUNK_TOKENS,
) -> list[InferenceSection]:
    """Read the selected sections anew, with their neighbours, in one call to the index.

    The section itself is read again with what surrounds it, so that its text is of one version of
    the document and of what the asker may read now: a section whose best chunk is no longer
    there, or no longer theirs, is gone.

    Args:
        chunk_tokens: how long chunks are at most, to turn tokens of context into whole chunks.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    if not selections:
        return []
    ranges = [_range(selection, chunk_tokens) for selection in selections]
    read = index.chunks(ranges, readers, deadline)
    sections = [_section(one.section, chunks) for one, chunks in zip(selections, read, strict=True)]
    return [section for section in sections if section]


def _range(selection: Selection, chunk_tokens: int) -> ChunkRange:
    section, reach = selection.section, _reach(selection.reading, chunk_tokens)
    return ChunkRange(section.document_id, max(0, section.start - reach), section.end + reach)


def _reach(reading: Reading, chunk_tokens: int) -> int:
    """Chunks to read on either side."""
    return math.ceil(reading.tokens / min(chunk_tokens, CHUNK_TOKENS))


def _section(found: InferenceSection, chunks: Iterable[Chunk]) -> InferenceSection | None:
    run = _around(found.best.chunk.position, chunks)
    by_key = {chunk.key: chunk for chunk in run}
    ranked = tuple(
        replace(one, chunk=by_key[one.chunk.key]) for one in found.ranked if one.chunk.key in by_key
    )
    return InferenceSection(run, ranked[0], ranked) if ranked else None


def _around(position: int, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """The chunks that stand without gaps around `position`; none if that one is missing."""
    by_position = {chunk.position: chunk for chunk in chunks}
    if position not in by_position:
        return ()
    start, end = position, position + 1
    while start - 1 in by_position:
        start -= 1
    while end in by_position:
        end += 1
    return tuple(by_position[place] for place in range(start, end))
