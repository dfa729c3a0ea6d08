"""Chunks that stand next to each other, read as one section."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from backend.search.models import InferenceSection, RankedChunk

_PlacedChunk: TypeAlias = tuple[int, RankedChunk]
"""A chunk and its place in the ranking."""
_PlacedSection: TypeAlias = tuple[int, InferenceSection]


def merge_individual_chunks(ranked: Iterable[RankedChunk]) -> list[InferenceSection]:
    """Consecutive chunks of a document become one section, at its best chunk's place.

    `ranked` is best first. Every chunk of it is in exactly one section.
    """
    placed: dict[tuple[str, int], _PlacedChunk] = {}
    for place, one in enumerate(ranked):
        placed.setdefault(one.chunk.key, (place, one))
    in_reading_order = [placed[key] for key in sorted(placed)]
    return _in_order(map(_section_of, _runs(in_reading_order)))


def merge_overlapping_sections(sections: Sequence[InferenceSection]) -> list[InferenceSection]:
    """Sections of one document that overlap or touch become one, at the place of the earliest."""
    in_reading_order = sorted(
        enumerate(sections), key=lambda pair: (pair[1].document_id, pair[1].start)
    )
    return _in_order(map(_merged, _overlaps(in_reading_order)))


def best_first(ranked: Iterable[RankedChunk]) -> tuple[RankedChunk, ...]:
    return tuple(sorted(ranked, key=lambda one: (-one.evidence.exact, -one.score)))


def _in_order(placed: Iterable[_PlacedSection]) -> list[InferenceSection]:
    return [section for _, section in sorted(placed, key=lambda pair: pair[0])]


def _runs(placed: Iterable[_PlacedChunk]) -> Iterator[list[_PlacedChunk]]:
    run: list[_PlacedChunk] = []
    for place, one in placed:
        document_id, position = one.chunk.key
        if run and run[-1][1].chunk.key != (document_id, position - 1):
            yield run
            run = []
        run.append((place, one))
    if run:
        yield run


def _section_of(run: list[_PlacedChunk]) -> _PlacedSection:
    by_place = sorted(run, key=lambda pair: pair[0])
    place, best = by_place[0]
    chunks = tuple(one.chunk for _, one in run)
    return place, InferenceSection(chunks, best, tuple(one for _, one in by_place))


def _overlaps(placed: Iterable[_PlacedSection]) -> Iterator[list[_PlacedSection]]:
    group: list[_PlacedSection] = []
    end = 0
    for place, section in placed:
        if group and (section.document_id != group[0][1].document_id or section.start > end):
            yield group
            group = []
        end = max(end, section.end) if group else section.end
        group.append((place, section))
    if group:
        yield group


def _merged(group: list[_PlacedSection]) -> _PlacedSection:
    if len(group) == 1:
        return group[0]
    chunks = {chunk.position: chunk for _, section in group for chunk in section.chunks}
    found = {one.chunk.key: one for _, section in group for one in section.ranked}
    ranked = best_first(found.values())
    in_reading_order = tuple(chunks[position] for position in sorted(chunks))
    return min(place for place, _ in group), InferenceSection(in_reading_order, ranked[0], ranked)
