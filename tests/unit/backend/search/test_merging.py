"""Merging: no chunk is lost or doubled, and sections stand where their best chunk stood."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from backend.search.models import InferenceSection
from backend.search.retrieval import merge_individual_chunks
from backend.search.sections import merge_overlapping_sections
from indexing.index.protocols import Hit
from tests.support.search import chunk, ranked, section


def spans(sections: list[InferenceSection]) -> list[tuple[str, int, int]]:
    return [(one.document_id, one.start, one.end) for one in sections]


def found(*keys: tuple[str, int]) -> list[Hit]:
    """Ranked chunks, best first, with falling scores."""
    return [ranked(chunk(*key), score=1.0 / place) for place, key in enumerate(keys, start=1)]


def test_consecutive_chunks_become_one_section_at_the_best_ones_place() -> None:
    merged = merge_individual_chunks(found(("a", 3), ("b", 0), ("a", 4), ("a", 6), ("a", 2)))
    assert spans(merged) == [("a", 2, 5), ("b", 0, 1), ("a", 6, 7)]
    assert merged[0].best.chunk.position == 3
    assert [one.chunk.position for one in merged[0].hits] == [3, 4, 2]


def test_the_last_chunk_of_one_document_is_no_neighbor_of_the_first_of_the_next() -> None:
    assert len(merge_individual_chunks(found(("a", 0), ("b", 1)))) == 2


def test_overlapping_and_touching_sections_become_one_at_the_place_of_the_earliest() -> None:
    merged = merge_overlapping_sections(
        [
            section("b", 0, 1),
            section("a", 5, 8),  # touches the next
            section("a", 2, 5),
            section("a", 7, 9),  # overlaps the first
            section("a", 10, 11),  # a gap before it
        ]
    )
    assert spans(merged) == [("b", 0, 1), ("a", 2, 9), ("a", 10, 11)]


def test_a_section_within_another_is_taken_in() -> None:
    merged = merge_overlapping_sections(
        [section("a", 3, 4), section("a", 0, 9), section("a", 8, 12)]
    )
    assert spans(merged) == [("a", 0, 12)]


def test_a_merged_section_is_known_by_its_strongest_chunk() -> None:
    weak = InferenceSection(
        (chunk("a", 0),), ranked(chunk("a", 0), 0.1), (ranked(chunk("a", 0), 0.1),)
    )
    merged = merge_overlapping_sections([weak, section("a", 1, 3, best=2)])
    assert merged[0].best.chunk.position == 2
    assert [one.score for one in merged[0].hits] == [1.0, 0.1]


def test_an_exact_match_is_the_best_of_a_merged_section() -> None:
    merged = merge_overlapping_sections([section("a", 0, 1), section("a", 1, 2, exact=1)])
    assert merged[0].best.chunk.position == 1


keys = st.tuples(st.sampled_from(["a", "b", "文書"]), st.integers(0, 12))


@given(st.lists(keys, unique=True))
def test_no_found_chunk_is_lost_or_doubled(given_keys: list[tuple[str, int]]) -> None:
    ranking = found(*given_keys)
    merged = merge_individual_chunks(ranking)
    assert sorted(one.key for section in merged for one in section.chunks) == sorted(given_keys)
    for one in merged:
        positions = [piece.position for piece in one.chunks]
        assert positions == list(range(one.start, one.end))
        assert one.best == one.hits[0]
    bests = [given_keys.index(one.best.chunk.key) for one in merged]
    assert bests == sorted(bests)


sections = st.builds(
    lambda document, start, length: section(document, start, start + length),
    st.sampled_from(["a", "b"]),
    st.integers(0, 15),
    st.integers(1, 5),
)


@given(st.lists(sections, max_size=8))
def test_merged_sections_hold_the_same_chunks_once_and_lie_apart(
    given_sections: list[InferenceSection],
) -> None:
    merged = merge_overlapping_sections(given_sections)
    held = [piece.key for one in merged for piece in one.chunks]
    assert len(held) == len(set(held))
    assert set(held) == {piece.key for one in given_sections for piece in one.chunks}
    for document in ("a", "b"):
        bounds = sorted((one.start, one.end) for one in merged if one.document_id == document)
        assert all(end < start for (_, end), (start, _) in pairwise(bounds))
    assert {one.chunk.key for section in merged for one in section.hits} == {
        one.chunk.key for section in given_sections for one in section.hits
    }
