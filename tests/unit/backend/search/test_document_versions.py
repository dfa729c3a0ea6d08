"""Which documents replace others, which only look so, and where the replaced ones stand."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.document_versions import find_successors, place_after_successors, years_in
from backend.search.models import DocumentNumbers, InferenceSection, Successor
from backend.search.search_tool import SearchTool
from connectors.access import EVERYBODY, Access, Readers
from indexing.chunking.chunk import Chunk
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.protocols import Evidence, Hit
from indexing.local import LocalIndex, open_index
from tests.support.search import chunk, request, section, write_local_index


def page(
    document_id: str,
    title: str,
    year: int | None,
    *tags: str,
    text: str = "For meals you receive 45 euros.",
    source: str = "wiki",
    access: Access = EVERYBODY,
) -> Chunk:
    return replace(
        chunk(document_id, 0, text, access, source),
        title=title,
        tags=frozenset(tags),
        updated_at=datetime(year, 5, 1, tzinfo=UTC) if year else None,
    )


def replaced(*chunks: Chunk) -> dict[str, str]:
    """The ids of the replaced documents with those of their successors."""
    hits = (Hit(one, 1.0, Evidence()) for one in chunks)
    sections = [InferenceSection((hit.chunk,), hit, (hit,)) for hit in hits]
    return {old: new.document_id for old, new in find_successors(sections).items()}


NEW = page("new", "Travel expenses", 2025, "path=policies/travel.md")


@pytest.mark.parametrize(
    "old",
    [
        page("old", "Travel expenses (old)", 2023, "path=policies/travel-old.md"),
        page("old", "Travel expenses", 2023, "path=policies/archive/travel.md"),
        page("old", "Travel expenses", 2023, "path=policies/travel_DRAFT.md"),
        page("old", "Anything", 2023, "superseded-by=policies/travel.md"),
        page("old", "Anything", 2026, "replaced_by=Travel expenses"),
        page("old", "Anything", 2023, text="This page is superseded by “Travel expenses”."),
        page("old", "Anything", 2023, text="(Obsolete: see travel.md)"),
        page("old", "Anything", 2023, text="Deprecated. Please use Travel expenses instead."),
        page("old", "Travel expenses (old)", 2023, "path=policies/journeys.md"),
        page("old", "Travel expenses", 2023, "path=policies/travel-2023-archived.md"),
        page("old", "Travel expenses", 2023, "path=policies/travel-2023.md", "status=Superseded"),
    ],
    ids=[
        "name",
        "folder",
        "draft",
        "metadata",
        "metadata-title",
        "sentence",
        "file name in a sentence",
        "deprecated",
        "title alone",
        "file name alone",
        "status",
    ],
)
def test_a_page_is_replaced_by_a_later_one_of_its_place_or_by_what_is_said(old: Chunk) -> None:
    assert replaced(old, NEW) == {"old": "new"} == replaced(NEW, old)


@pytest.mark.parametrize(
    "new",
    [
        page("new", "Travel", 2025, "replaces=travel-2023.md"),
        page("new", "Travel", 2025, "Supersedes=Journeys of 2023"),
        page("new", "Travel", 2025, text="It replaces the rules on journeys of 2023. Do not use."),
        page("new", "Reisen", 2025, text="Dies ersetzt „Journeys of 2023“ ab Mai."),
        page("new", "Travel", 2025, text="These new rules replace the Journeys of 2023."),
        page("new", "Travel", 2025, text="They replace travel-2023.md."),
    ],
    ids=["metadata", "metadata-title", "sentence", "german", "plural", "file name"],
)
def test_what_a_page_says_that_it_replaces_is_replaced(new: Chunk) -> None:
    old = page("old", "Journeys of 2023", 2023, "path=policies/travel-2023.md")
    assert replaced(old, new) == {"old": "new"}


def test_a_page_of_a_wiki_is_replaced_in_its_space_only() -> None:
    old = page("old", "Meals (old)", 2023, "space=HR", "kind=page")
    new = page("new", "Meals", 2025, "space=HR", "kind=page")
    assert replaced(old, new) == {"old": "new"}
    assert replaced(old, replace(new, tags=frozenset({"space=IT", "kind=page"}))) == {}
    posts = [replace(one, tags=frozenset({"space=HR", "kind=blog post"})) for one in (old, new)]
    assert replaced(*posts) == {}


@pytest.mark.parametrize(
    "others",
    [
        [page(f"readme {n}", "README", 2020 + n, f"path=part {n}/README.md") for n in range(4)],
        [
            page(f"week {n}", "Weekly notes", 2020 + n, f"path=2026-0{n + 1}-05.md")
            for n in range(4)
        ],
        [page(f"thread {n}", "general", 2020 + n, "channel=general") for n in range(4)],
        [page(f"mail {n}", "Re: Weekly report", 2020 + n) for n in range(4)],
        [page(f"v{n}", f"Release notes v{n}", 2020 + n, f"path=v{n}.md") for n in range(4)],
        [
            page(f"{n}", f"Annual report {2020 + n}", 2020 + n, f"path={2020 + n}.pdf")
            for n in range(4)
        ],
        [
            page("word", "Travel expenses", 2023, "path=travel.docx"),
            page("pdf", "Travel expenses", 2024, "path=travel.pdf"),
        ],
        [
            page("same", "Meals", 2025, "path=meals-old.md"),
            page("day", "Meals", 2025, "path=meals.md"),
        ],
        [
            page("undated", "Meals", None, "path=meals-old.md"),
            page("m", "Meals", 2025, "path=meals.md"),
        ],
        [
            page("marked", "Meals (old)", 2026, "path=meals-old.md"),
            page("m", "Meals", 2025, "path=meals.md"),
        ],
        [
            page("a", "Meals", 2023, source="mail"),
            page("b", "Food", 2025, "replaces=Meals", source="x"),
        ],
        [
            page("title", "Key", 2023),
            page("text", "Signing", 2025, text="The new key replaces the old key on Monday."),
        ],
        [
            page("later", "Meals on journeys", 2026),
            page("text", "Meals", 2025, text="This page replaces “Meals on journeys”."),
        ],
        [
            page("far", "Meals on journeys", 2023),
            page("text", "Food", 2025, text="It replaces the card. Meals on journeys are paid."),
        ],
        [page("a", "One", 2023, "replaces=Two"), page("b", "Two", 2025, "replaces=One")],
        [
            page("town", "Old Town office", 2023, "path=old-town-office.md"),
            page("office", "Town office", 2025, "path=town-office.md"),
        ],
        [
            page("a", "Minutes (old)", 2023, "path=old/minutes.md"),
            page("b", "Minutes", 2025, "path=team/minutes.md"),
        ],
        [
            page("a", "Meals", 2023, "path=meals-of-guests.md"),
            page("b", "Meals", 2025, "path=meals.md"),
        ],
        [
            page("a", "Lamps", 2023, "path=lamps.md"),
            page("b", "Bulbs", 2025, "path=b.md", text="It replaces my-lamps.md and the lamp."),
        ],
    ],
    ids=[
        "readmes",
        "series",
        "channel",
        "mails",
        "releases",
        "years",
        "formats",
        "same day",
        "undated",
        "marked old",
        "other source",
        "title of one word",
        "later than the sentence",
        "another sentence",
        "each other",
        "proper name",
        "other folder",
        "equal title alone",
        "part of a file name",
    ],
)
def test_what_only_looks_alike_is_not_replaced(others: list[Chunk]) -> None:
    assert replaced(*others) == {}


def test_of_several_successors_the_latest_is_told() -> None:
    first = page("first", "Travel expenses", 2021, "path=archive/travel-old.md")
    second = page("second", "Travel expenses", 2023, "path=archive/travel-draft.md")
    assert replaced(first, second, replace(NEW, tags=frozenset({"path=travel.md"}))) == {
        "first": "new",
        "second": "new",
    }


@given(
    st.lists(st.sampled_from("abcde"), max_size=12),
    st.dictionaries(st.sampled_from("abcde"), st.sampled_from("abcdef")),
)
def test_every_section_stays_and_none_stands_above_its_successor(
    names: list[str], by: dict[str, str]
) -> None:
    sections = [section(name, 2 * place, 2 * place + 1) for place, name in enumerate(names)]
    successors = {old: Successor(new, new) for old, new in by.items() if old != new}
    placed = place_after_successors(sections, successors)
    assert sorted(one.start for one in placed) == sorted(one.start for one in sections)
    order = list(dict.fromkeys(one.document_id for one in placed))
    for old, new in successors.items():
        cyclic = _leads_to(new, old, successors)
        if old in order and new.document_id in order and not cyclic:
            assert order.index(new.document_id) < order.index(old)


def _leads_to(start: Successor, end: str, successors: dict[str, Successor]) -> bool:
    seen: set[str] = set()
    name = start.document_id
    while name in successors and name not in seen:
        seen.add(name)
        name = successors[name].document_id
    return name in seen or name == end


def test_without_a_successor_the_order_stays() -> None:
    sections = [section(name, 0, 1) for name in "abc"]
    assert place_after_successors(sections, {"a": Successor("z", "z")}) == sections


OLD_RULES = "Travel expenses: meals on a journey are paid with 38 euros, a journey by bike with 20."
NEW_RULES = "Meals are paid with 45 euros. This replaces the travel expenses rules of 2023."
CORPUS = (
    page("old", "Travel expenses 2023", 2023, text=OLD_RULES),
    page("other", "Canteen", 2024, text="The canteen serves meals."),
    page("new", "Travel expenses", 2025, text=NEW_RULES),
    page(
        "secret",
        "Travel",
        2026,
        "replaces=Travel expenses",
        text="x",
        access=Access.to(["group:b"]),
    ),
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LocalIndex]:
    write_local_index(tmp_path, CORPUS)
    with open_index(tmp_path, HashingEmbedder().identity) as opened:
        yield opened


def results(index: LocalIndex, query: str, *tokens: str) -> list[tuple[str, str | None]]:
    """Each result with what it is superseded by."""
    tool = SearchTool(
        index=index,
        embedder=HashingEmbedder(),
        understanding=EVERYTHING,
        count_tokens=estimated_tokens,
        complete=None,
        numbers=DocumentNumbers(),
    )
    docs = tool.find_sections(request(query, readers=Readers.of(*tokens)), 10)
    return [
        (doc.document_id, doc.superseded_by.document_id if doc.superseded_by else None)
        for doc in docs
    ]


def test_the_replaced_page_stands_directly_below_its_successor(index: LocalIndex) -> None:
    found = results(index, "travel expenses meals on a journey")
    (above, below) = next(pair for pair in pairwise(found) if pair[1][0] == "old")
    assert above[0] == "new"
    assert below == ("old", "new")


@pytest.mark.parametrize("query", ["meals on a journey of 2023", "old rules: meals on a journey"])
def test_who_asks_about_the_past_finds_it_first_and_marked(index: LocalIndex, query: str) -> None:
    assert results(index, query)[0] == ("old", "new")


def test_a_successor_that_may_not_be_read_is_not_told_of(index: LocalIndex) -> None:
    assert dict(results(index, "travel expenses meals x"))["new"] is None
    assert dict(results(index, "travel expenses meals x", "group:b"))["new"] == "secret"


def test_a_year_is_written_in_figures_that_every_part_reads() -> None:
    assert years_in("of 2024, 20\U00010d42\U00010d46 and ٢٠٢٦") == {"2024"}
