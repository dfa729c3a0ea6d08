"""Several texts, one numbering."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.citation_utils import collapse_citations
from backend.chat.citations.marker_parser import Marker, split_markers
from tests.unit.backend.chat.citations.test_marker_parser import NASTY

DOCUMENTS = {n: CitedDocument(f"kb:{n}", f"Document {n}", f"http://x/{n}") for n in range(1, 10)}


def numbered(**numbers: int) -> dict[int, CitedDocument]:
    """`a=3` reads: document 1 has number 3; b is document 2, and so on."""
    return {number: DOCUMENTS["abcdefghi".index(name) + 1] for name, number in numbers.items()}


@pytest.mark.parametrize(
    ("answer", "collapsed"),
    [
        ("X [7]. Y [3].", "X [1]. Y [2]."),
        ("X [3] Y [3]", "X [1] Y [1]"),
        ("X [3, 4].", "X [1, 2]."),
        ("X [3-4].", "X [1, 2]."),
        ("X [3, 8].", "X [1]."),
        ("X [3][8].", "X [1]."),
        ("X [3] [8] Y", "X [1] Y"),
        ("X [3] [4] [8] Y", "X [1] [2] Y"),
        ("X [3]. [8] Y", "X [1]. [1] Y"),
        ("X [[3]] 【4】", "X [1] [2]"),
        ("X [99] and [3]", r"X \[99\] and [1]"),
        ("X [99, 3]", r"X [1]\[99\]"),
        ("`a[3]` [l](u[3])", "`a[3]` [l](u[3])"),
        ("no citation", "no citation"),
        ("ends [3] ", "ends [1] "),
    ],
)
def test_numbers_begin_at_one_and_doubles_go(answer: str, collapsed: str) -> None:
    mapping = numbered(a=7) | numbered(b=3) | numbered(c=4) | {8: DOCUMENTS[2]}
    if "[7]" not in answer:
        mapping |= {7: DOCUMENTS[9]}
    assert collapse_citations(answer, mapping).text == collapsed


def test_a_document_keeps_the_number_that_it_has_and_new_ones_follow() -> None:
    into = numbered(a=1, b=4)
    collapsed = collapse_citations("P [1], Q [2], R [3].", numbered(c=1, a=2, d=3), into)
    assert collapsed.text == "P [5], Q [1], R [6]."
    assert collapsed.mapping == numbered(a=1, b=4, c=5, d=6)
    assert into == numbered(a=1, b=4)


def test_only_what_is_cited_is_taken_over() -> None:
    assert collapse_citations("P [1].", numbered(a=1, b=2)).mapping == numbered(a=1)


def test_a_number_without_a_document_never_comes_to_mean_one() -> None:
    first = collapse_citations("A [1], B [2].", numbered(a=1))
    second = collapse_citations("C [1].", numbered(b=1), first.mapping)
    merged = f"{first.text} {second.text}"
    assert merged == r"A [1], B \[2\]. C [2]."
    assert [p.numbers for p in split_markers(merged) if isinstance(p, Marker)] == [(1,), (2,)]


PIECES = st.sampled_from(
    ["[1]", "[2]", "[3, 4]", "[99]", "[1-3]", " ", "x", ". ", "`[1]`", "\n", "【2】"]
)


@given(st.lists(PIECES, max_size=20).map("".join))
def test_merging_again_changes_nothing(answer: str) -> None:
    once = collapse_citations(answer, dict(enumerate(DOCUMENTS.values(), 1)))
    assert collapse_citations(once.text, once.mapping, once.mapping) == once


def cited(text: str, numbers: Mapping[int, CitedDocument]) -> list[str]:
    markers = [piece for piece in split_markers(text) if isinstance(piece, Marker)]
    found = [numbers[n].document_id for m in markers for n in m.numbers if n in numbers]
    return list(dict.fromkeys(found))


@given(st.lists(PIECES | st.sampled_from(NASTY), max_size=24).map("".join))
def test_the_same_documents_are_cited_in_the_same_order(answer: str) -> None:
    mapping = {1: DOCUMENTS[5], 2: DOCUMENTS[6], 3: DOCUMENTS[5], 4: DOCUMENTS[7]}
    collapsed = collapse_citations(answer, mapping, numbered(f=1))
    assert cited(collapsed.text, collapsed.mapping) == cited(answer, mapping)


@pytest.mark.parametrize(
    ("answer", "collapsed"),
    [
        (r"\【3】", r"\【1】"),
        ("【3】(http://x)", "【1】(http://x)"),
        ("[a]【3】", "[a]【1】"),
        ("[3]【8】(http://x)", "[1]【1】(http://x)"),
        ("[a]【3-4】 [99]", r"[a]【1, 2】 \[99\]"),
        ("[a][[3]]", "[a][[1]]"),
        ("[see [7]][3]", r"\[see \[7\]][1]"),
        ("[[7]a][a][3]", r"\[\[7\]a][a][3]"),
    ],
)
def test_a_marker_that_would_join_with_its_neighbors_stays_as_it_is_written(
    answer: str, collapsed: str
) -> None:
    mapping = numbered(b=3) | numbered(c=4) | {8: DOCUMENTS[2]}
    assert collapse_citations(answer, mapping).text == collapsed


def test_the_address_behind_a_marker_goes() -> None:
    answer = "X [[3]](https://evil.example), [4][3](u)."
    collapsed = collapse_citations(answer, numbered(a=3) | numbered(b=4))
    assert collapsed.text == "X [1], [2][1]."
