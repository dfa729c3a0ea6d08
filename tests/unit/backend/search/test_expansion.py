"""Expansion: one call, whole chunks, and only what the asker may read."""

import pytest

from backend.search.expansion import expand_section_with_context
from backend.search.selection import ContextSize, SelectedSection
from connectors.access import Access, Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.search import MemoryIndex, chunk, section

SOON = Deadline.after(86_400)
ANN = Readers.of("user:ann@example.com")
LONG = tuple(chunk("long", place) for place in range(30))
SHORT = tuple(chunk("short", place) for place in range(2))


def spans(
    *selections: SelectedSection, corpus: tuple[Chunk, ...] = LONG + SHORT, chunk_tokens: int = 512
) -> list[tuple[str, int, int]]:
    index = MemoryIndex(corpus)
    expanded = expand_section_with_context(selections, index, ANN, SOON, chunk_tokens)
    return [(one.document_id, one.start, one.end) for one in expanded]


@pytest.mark.parametrize(
    ("reading", "chunk_tokens", "expected"),
    [
        (ContextSize.AS_IS, 512, (10, 12)),
        (ContextSize.ADJACENT, 512, (8, 14)),  # 1,000 / 512, rounded up: 2 on either side
        (ContextSize.WIDE, 512, (5, 17)),  # 2,500 / 512: 5
        (ContextSize.ADJACENT, 256, (6, 16)),  # 1,000 / 256: 4
        (ContextSize.WIDE, 8_192, (5, 17)),  # chunks are never longer than 512
    ],
)
def test_how_far_a_section_reaches(
    reading: ContextSize, chunk_tokens: int, expected: tuple[int, int]
) -> None:
    selected = SelectedSection(section("long", 10, 12), reading)
    assert spans(selected, chunk_tokens=chunk_tokens) == [("long", *expected)]


def test_a_document_ends_where_it_ends() -> None:
    assert spans(SelectedSection(section("short", 1, 2), ContextSize.WIDE)) == [("short", 0, 2)]
    assert spans(SelectedSection(section("long", 29, 30), ContextSize.ADJACENT)) == [
        ("long", 27, 30)
    ]


def test_all_sections_are_read_in_one_call_with_the_askers_readers() -> None:
    index = MemoryIndex(LONG + SHORT)
    selections = [
        SelectedSection(section("short", 0, 1), ContextSize.AS_IS),
        SelectedSection(section("long", 4, 5), ContextSize.ADJACENT),
    ]
    expand_section_with_context(selections, index, ANN, SOON)
    assert index.reads == [([ChunkRange("short", 0, 1), ChunkRange("long", 2, 7)], ANN)]


def test_nothing_selected_asks_nothing() -> None:
    index = MemoryIndex(LONG)
    assert expand_section_with_context([], index, ANN, SOON) == []
    assert index.reads == []


def test_neighbours_that_are_forbidden_stay_out_and_so_does_what_lies_behind_them() -> None:
    bob = Access.to(["user:bob@example.com"])
    corpus = tuple(
        chunk("mixed", place, access=bob) if place == 3 else chunk("mixed", place)
        for place in range(6)
    )
    assert spans(SelectedSection(section("mixed", 1, 2), ContextSize.WIDE), corpus=corpus) == [
        ("mixed", 0, 3)
    ]


def test_a_section_that_was_withdrawn_since_it_was_found_is_gone() -> None:
    closed = tuple(chunk("long", place, access=Access.to(["group:board"])) for place in range(30))
    selections = (
        SelectedSection(section("long", 4, 5), ContextSize.AS_IS),
        SelectedSection(section("short", 0, 1), ContextSize.AS_IS),
    )
    assert spans(*selections, corpus=closed + SHORT) == [("short", 0, 1)]


def test_a_document_that_changed_since_it_was_found_is_shown_in_one_version() -> None:
    new = tuple(chunk("long", place, text=f"new {place}") for place in range(4))
    selected = SelectedSection(section("long", 1, 2), ContextSize.ADJACENT)
    expanded = expand_section_with_context([selected], MemoryIndex(new), ANN, SOON)
    assert expanded[0].text == "new 0\nnew 1\nnew 2\nnew 3"
    assert expanded[0].best.chunk.text == "new 1"


def test_what_was_found_stays_known() -> None:
    found = section("long", 10, 12, best=11)
    expanded = expand_section_with_context(
        [SelectedSection(found, ContextSize.WIDE)], MemoryIndex(LONG), ANN, SOON
    )
    assert expanded[0].best == found.best
    assert expanded[0].hits == found.hits


def test_a_deadline_is_kept() -> None:
    with pytest.raises(DeadlineExceededError):
        expand_section_with_context(
            [SelectedSection(section("long", 0, 1), ContextSize.WIDE)],
            MemoryIndex(LONG),
            ANN,
            Deadline.after(-1),
        )
