"""Budgets: what fits is shown, and never more."""

import json
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.search.models import DocumentNumbers, InferenceSection, SearchDoc
from backend.search.prompts import NOTHING_FOUND
from backend.search.sections import (
    NOTHING_FITS,
    FittedSections,
    fit_answer_budget,
    results_for_model,
    to_json,
)
from backend.search.selection import (
    excerpt_for_model,
    select_chunks_for_relevance,
    trim_sections_by_tokens,
)
from indexing.embedding.token_counting import CountTokens, estimated_tokens
from tests.support.search import UPDATED, section


def characters(text: str) -> int:
    return len(text)


def spans(sections: tuple[InferenceSection, ...]) -> list[tuple[str, int, int]]:
    return [(one.document_id, one.start, one.end) for one in sections]


def fit(
    sections: list[InferenceSection], budget: int, count: CountTokens = characters, note: str = ""
) -> FittedSections:
    return fit_answer_budget(sections, budget, count, DocumentNumbers(), note)


@pytest.mark.parametrize(
    ("best", "shown"),
    [(5, [5, 6, 7]), (6, [5, 6, 7]), (7, [6, 7, 8]), (9, [7, 8, 9])],
)
def test_three_chunks_are_shown_around_the_best(best: int, shown: list[int]) -> None:
    assert [
        one.position for one in select_chunks_for_relevance(section("a", 5, 10, best=best))
    ] == shown


def test_of_a_short_section_all_is_shown() -> None:
    assert len(select_chunks_for_relevance(section("a", 5, 7, best=6))) == 2


def test_a_section_that_does_not_fit_is_passed_over() -> None:
    large = section("large", 0, 1, text="x" * 5_000)
    small = [section(name, 0, 1, text="y" * 100) for name in "abc"]
    kept = trim_sections_by_tokens([small[0], large, small[1], small[2]], 1_000, characters)
    assert kept == small


def test_at_most_three_chunks_of_a_section_are_counted() -> None:
    long = section("long", 0, 100, text="x" * 200)  # 3 x 200 characters, and its facts
    assert trim_sections_by_tokens([long], 900, characters) == [long]
    assert trim_sections_by_tokens([long], 600, characters) == []


def test_every_section_gets_its_best_chunk_before_any_grows() -> None:
    sections = [section(name, 0, 9, best=4, text="x" * 300) for name in "abc"]
    frame = len(fit([section("a", 0, 1, text="")], 10_000).text)
    # Three frames with a chunk each, and two chunks more: both go to the first.
    fitted = fit(sections, 3 * (frame + 310) + 2 * 325)
    assert spans(fitted.sections) == [("a", 3, 6), ("b", 4, 5), ("c", 4, 5)]


def test_what_fits_whole_is_left_whole() -> None:
    sections = [section("a", 0, 4), section("b", 3, 5)]
    assert fit(sections, 100_000).sections == tuple(sections)


def test_a_section_too_long_is_passed_over_for_one_that_fits() -> None:
    fitted = fit([section("large", 0, 1, text="x" * 9_000), section("small", 0, 1)], 2_000)
    assert spans(fitted.sections) == [("small", 0, 1)]


def test_when_nothing_fits_the_model_is_informed() -> None:
    fitted = fit([section("large", 0, 1, text="x" * 9_000)], 500)
    assert json.loads(fitted.text) == {"results": [], "note": NOTHING_FITS}


def test_without_sections_the_note_says_why() -> None:
    assert json.loads(fit([], 500, note=NOTHING_FOUND).text) == {
        "results": [],
        "note": NOTHING_FOUND,
    }


@pytest.mark.parametrize("budget", [0, 1, 10])
def test_a_budget_for_nothing_gives_an_empty_text(budget: int) -> None:
    assert fit([section("a", 0, 3)], budget) == FittedSections((), "")


def test_numbers_are_given_to_what_is_shown_only() -> None:
    numbers = DocumentNumbers()
    sections = [section("large", 0, 1, text="x" * 9_000), section("small", 0, 1)]
    fit_answer_budget(sections, 2_000, characters, numbers, "")
    assert [numbers.assign("small"), numbers.assign("large")] == [1, 2]


def test_a_full_budget_is_used() -> None:
    prose = "The travel policy pays 42 cents per kilometre, and trains in second class. " * 6
    sections = [section(str(number), 0, 11, best=5, text=prose) for number in range(10)]
    tokens = estimated_tokens(fit(sections, 5_000, estimated_tokens).text)
    assert 4_000 < tokens <= 5_000


def test_pieces_without_text_end_as_well() -> None:
    empty = [section(str(number), 0, 1, text=" ") for number in range(5)]
    fitted = fit(empty, 2_000, lambda text: len(text) ** 2 // 100)
    assert 0 < len(fitted.sections) < 5


def counting(count: CountTokens, calls: list[int]) -> CountTokens:
    def counted(text: str) -> int:
        calls.append(len(text))
        return count(text)

    return counted


def test_little_is_counted_beside_the_text_itself() -> None:
    calls: list[int] = []
    sections = [section(str(number), 0, 30, best=15, text="word " * 400) for number in range(10)]
    fitted = fit(sections, 12_800, counting(estimated_tokens, calls))
    assert sum(calls) < 1.3 * len(fitted.text)


texts = st.text(alphabet=st.sampled_from('ab \n"\\é文字😀<'), max_size=200)
sections_of_texts = st.builds(
    lambda name, start, length, best, text: section(
        name, start, start + length, best=start + best % length, text=text
    ),
    st.sampled_from(["a", "b", "c", "文"]),
    st.integers(0, 5),
    st.integers(1, 8),
    st.integers(0, 7),
    texts,
)
counters: st.SearchStrategy[Callable[[str], int]] = st.sampled_from(
    [
        characters,
        estimated_tokens,
        lambda text: len(text.encode()),
        lambda text: 3 * len(text) + 7,
        lambda text: len(text.split()),
        lambda text: len(text) ** 2 // 100,  # a whole costs more than its pieces
        lambda text: 0 if len(text) < 300 else 1_000,
    ]
)


@settings(max_examples=300)
@given(st.lists(sections_of_texts, max_size=8), st.integers(0, 3_000), counters)
def test_the_text_never_exceeds_the_budget(
    sections: list[InferenceSection], budget: int, count: CountTokens
) -> None:
    fitted = fit(sections, budget, count)
    if fitted.text:
        assert count(fitted.text) <= budget
        assert len(json.loads(fitted.text)["results"]) == len(fitted.sections)
    else:
        assert fitted.sections == ()
    for part in fitted.sections:
        whole = next(one for one in sections if one.best is part.best)
        assert set(part.chunks) <= set(whole.chunks)
        assert part.best.chunk in part.chunks
        positions = [piece.position for piece in part.chunks]
        assert positions == list(range(part.start, part.end))


def shown_length(one: InferenceSection, number: int) -> int:
    return len(to_json(excerpt_for_model(one, number, select_chunks_for_relevance(one))))


@given(st.lists(sections_of_texts, max_size=8), st.integers(0, 3_000))
def test_a_trimmed_list_is_in_order_and_holds_all_that_fits(
    sections: list[InferenceSection], budget: int
) -> None:
    kept = trim_sections_by_tokens(sections, budget, characters)
    costs = [shown_length(one, number) + 2 for number, one in enumerate(kept)]
    assert sum(costs) <= budget
    rest = iter(kept)
    awaited = next(rest, None)
    spent = number = 0
    for one in sections:
        if one is awaited:
            spent, number, awaited = spent + costs[number], number + 1, next(rest, None)
        else:
            assert spent + shown_length(one, number) + 2 > budget
    assert awaited is None


def test_a_document_keeps_its_number() -> None:
    numbers = DocumentNumbers()
    assert [numbers.assign(one) for one in ("b", "a", "b", "文書", "a")] == [1, 2, 1, 3, 2]


def test_threads_agree_on_the_numbers() -> None:
    numbers = DocumentNumbers()
    reported: list[list[int]] = [[] for _ in range(8)]

    def ask(answers: list[int]) -> None:
        answers.extend(numbers.assign(f"document {one % 100}") for one in range(1_000))

    threads = [threading.Thread(target=ask, args=(answers,)) for answers in reported]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answers == reported[0] for answers in reported)
    assert sorted(numbers.assign(f"document {one}") for one in range(100)) == list(range(1, 101))


def test_the_model_reads_json() -> None:
    numbers = DocumentNumbers()
    numbers.assign("seen before")
    text = results_for_model([section("社内", 0, 2)], numbers, "A note.")
    assert "社内" in text
    assert json.loads(text) == {
        "results": [
            {
                "document": 2,
                "title": "About 社内",
                "source": "wiki",
                "updated_at": "2026-03-01T09:30+00:00",
                "authors": ["Ann Lee"],
                "url": "https://wiki.example/社内",
                "content": "社内 piece 0\n社内 piece 1",
                "metadata": {"state": "final", "team": ["platform", "web"]},
            }
        ],
        "note": "A note.",
    }


def test_two_sections_of_a_document_share_its_number() -> None:
    shown = json.loads(
        results_for_model([section("a", 0, 1), section("a", 5, 6)], DocumentNumbers(), "")
    )
    assert [result["document"] for result in shown["results"]] == [1, 1]
    assert "note" not in shown


def test_people_are_shown_a_search_doc() -> None:
    found = section("a", 0, 2, best=1)
    doc = SearchDoc.from_section(found, 7)
    assert (doc.number, doc.document_id, doc.title, doc.source) == (7, "a", "About a", "wiki")
    assert (doc.link, doc.updated_at) == ("https://wiki.example/a", UPDATED)
    assert doc.content == "a piece 0\na piece 1"
    assert (doc.score, doc.why) == (found.best.score, found.best.why)
