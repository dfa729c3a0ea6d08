"""Selection: what a model's answer means, however it is written; what is read around the selected sections."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.llm_protocol import CompletionError
from backend.search.sections import (
    MAX_SECTIONS,
    ContextSize,
    SelectedSection,
    expand_section_with_context,
    select_best,
)
from backend.search.selection import (
    SectionChoice,
    parse_choices,
    select_sections_for_expansion,
)
from connectors.access import Access, Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.search import MemoryIndex, ScriptedModel, chunk, failing, section

SOON = Deadline.after(86_400)
FIVE = [section(name, 0, 1) for name in "abcde"]
ANN = Readers.of("user:ann@example.com")
LONG = tuple(chunk("long", place) for place in range(30))
SHORT = tuple(chunk("short", place) for place in range(2))


def chosen(answer: str, exact: str = "", names: str = "abcde") -> list[tuple[str, ContextSize]]:
    sections = [section(name, 0, 1, exact=int(name in exact)) for name in names]
    model = ScriptedModel(select=answer)
    selections = select_sections_for_expansion(["Why?"], sections, model, SOON)
    return [(one.section.document_id, one.context) for one in selections]


def answer(*entries: tuple[int, str]) -> str:
    return json.dumps({"sections": [{"id": number, "read": read} for number, read in entries]})


def test_the_models_order_and_readings_are_taken() -> None:
    assert chosen(answer((3, "wide"), (0, "as_is"), (2, "adjacent"))) == [
        ("d", ContextSize.WIDE),
        ("a", ContextSize.AS_IS),
        ("c", ContextSize.ADJACENT),
    ]


def test_not_relevant_and_not_named_are_gone() -> None:
    assert chosen(answer((0, "not_relevant"), (1, "as_is"))) == [("b", ContextSize.AS_IS)]


def test_nothing_relevant_leaves_nothing() -> None:
    assert chosen('{"sections": []}') == []
    assert chosen(answer(*((number, "not_relevant") for number in range(5)))) == []


def test_repeated_and_unknown_numbers_are_ignored() -> None:
    said = answer((1, "as_is"), (99, "wide"), (1, "wide"), (-1, "wide"))
    assert chosen(said) == [("b", ContextSize.AS_IS)]


def test_exact_matches_stay_and_stand_first() -> None:
    said = answer((0, "wide"), (3, "not_relevant"))
    assert chosen(said, exact="cd") == [
        ("c", ContextSize.AS_IS),
        ("d", ContextSize.AS_IS),
        ("a", ContextSize.WIDE),
    ]


def test_a_chosen_exact_match_is_read_as_the_model_says() -> None:
    assert chosen(answer((4, "as_is"), (1, "wide")), exact="b") == [
        ("b", ContextSize.WIDE),
        ("e", ContextSize.AS_IS),
    ]


def test_at_most_ten_are_taken_and_of_unchosen_exact_matches_three_beyond() -> None:
    names = "abcdefghijklmnopqrst"
    said = answer(*((number, "as_is") for number in range(8, 20)))
    taken = [name for name, _ in chosen(said, exact="abcdefgh", names=names)]
    assert taken == list("abc" + "ijklmnopqr")
    assert len(taken) == MAX_SECTIONS + 3


@pytest.mark.parametrize(
    "said",
    [
        '```json\n{"sections": [{"id": 1, "read": "wide"}]}\n```',
        'Sections [0] and {x}: {"sections": [{"id": 1, "read": "wide"}]}. Done.',
        '<think>{"sections": [{"id": 0}]}</think>{"sections": [{"id": 1, "read": "wide"}]}',
        '[{"id": "1", "read": "WIDE"}]',
        '{"sections": [{"id": 1, "read": "wide", "because": {"a": [1]}}, 7, null, {"id": true}]}',
    ],
)
def test_ways_in_which_models_write_the_same(said: str) -> None:
    assert parse_choices(said, 5) == [SectionChoice(1, ContextSize.WIDE)]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "I would read the second one.",
        '{"sections": [{"id": 0, "rea',
        '{"sections": "all"}',
        answer((17, "wide"), (5, "as_is")),  # there are five, numbered from 0
        '{"sections": [0, 1]}',
        "[" * 30_000,
        '{"sections": [{"id": "' + "9" * 6_000 + '"}]}',
    ],
)
def test_an_answer_that_names_no_section_has_failed(said: str) -> None:
    with pytest.raises(CompletionError):
        parse_choices(said, 5)


def test_a_model_that_fails_says_so() -> None:
    with pytest.raises(CompletionError, match="500"):
        select_sections_for_expansion(["Why?"], FIVE, failing(), SOON)


def test_the_model_sees_the_queries_and_three_chunks_a_section() -> None:
    model = ScriptedModel()
    long = section("long", 10, 20, best=14)
    select_sections_for_expansion(["Why?", "reason"], [long], model, SOON)
    asked = json.loads(model.asked["select"][1].text)
    assert asked["question"] == "Why?"
    assert asked["searched_as"] == ["reason"]
    assert asked["sections"] == [
        {
            "id": 0,
            "title": "About long",
            "source": "wiki",
            "updated_at": "2026-03-01T09:30+00:00",
            "authors": ["Ann Lee"],
            "metadata": {"state": "final", "team": ["platform", "web"]},
            "content": "long piece 13\nlong piece 14\nlong piece 15",
        }
    ]


def test_without_a_choice_the_best_ten_are_taken() -> None:
    many = [section(str(number), 0, 1) for number in range(12)]
    assert select_best(many, ContextSize.ADJACENT) == tuple(
        SelectedSection(one, ContextSize.ADJACENT) for one in many[:10]
    )


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_whatever_is_said_is_understood_or_has_failed(said: str) -> None:
    try:
        known = parse_choices(said, 5)
    except CompletionError:
        return
    assert all(0 <= verdict.number < 5 for verdict in known)


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


def test_neighbors_that_are_forbidden_stay_out_and_so_does_what_lies_behind_them() -> None:
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
