"""Results by document: each where its best passage stands, with the others below it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from backend.search.models import DocumentNumbers
from backend.search.query_syntax import correct_request, parse_query
from backend.search.search_service import (
    GroupedRanking,
    Grouping,
    find_grouped,
    group_by_document,
)
from connectors.access import Readers
from indexing.index.protocols import Filters
from tests.support.search import MemoryIndex, chunk, make_service, section

LONG = tuple(chunk("long", 2 * n, f"Canteen soup number {n}, canteen soup.") for n in range(120))
SHORT = tuple(chunk(f"short {n}", 0, f"About the canteen, note {n} of many.") for n in range(12))


def _find(query: str, limit: int, grouping: Grouping) -> tuple[GroupedRanking, MemoryIndex]:
    index = MemoryIndex((*LONG, *SHORT))
    service = make_service(index)
    request = service.request(parse_query(query), Readers.of(), Filters(), service.deadline())
    return find_grouped(service.tool(None, DocumentNumbers()), request, limit, grouping), index


@given(st.lists(st.sampled_from("abcd"), max_size=20))
def test_every_section_is_in_one_group_and_the_order_stays(names: list[str]) -> None:
    sections = [section(name, 2 * place, 2 * place + 1) for place, name in enumerate(names)]
    groups = group_by_document(sections)
    assert [group.best.document_id for group in groups] == list(dict.fromkeys(names))
    for group in groups:
        own = [one for one in sections if one.document_id == group.best.document_id]
        assert [group.best, *group.further] == own


def test_documents_are_results_with_their_further_passages() -> None:
    found, _ = _find("canteen soup", 10, Grouping.DOCUMENT)
    first = found.docs[0]
    assert first.document_id == "long"
    assert {one.document_id for one in first.further} == {"long"}
    assert {one.number for one in first.further} == {first.number}
    assert [doc.number for doc in found.docs] == list(range(1, len(found.docs) + 1))


def test_a_document_of_many_passages_does_not_keep_others_away() -> None:
    found, index = _find("canteen soup", 10, Grouping.DOCUMENT)
    assert len(found.groups) == 10
    assert len(index.finds) == 2
    assert found.more


def test_passages_stay_results_by_themselves_where_nothing_else_is_asked() -> None:
    found, index = _find("canteen soup", 10, Grouping.PASSAGE)
    assert found.docs[0].document_id == "long"
    assert all(not doc.further for doc in found.docs)
    assert (len(found.groups), found.more, len(index.finds)) == (10, True, 1)


def test_a_word_is_corrected_in_a_query_and_not_in_a_pasted_text() -> None:
    service = make_service(MemoryIndex(LONG))
    for query, corrected in (
        ("cantean soup", "canteen soup"),
        ("cantean soup " * 50, None),
    ):
        request = service.request(
            parse_query(query), Readers.of(), Filters(), service.deadline(), infer=frozenset()
        )
        assert request.corrected == corrected


def test_a_word_that_is_spelled_right_is_not_corrected() -> None:
    service = make_service(MemoryIndex(LONG))
    request = replace(
        service.request(
            parse_query("soup"), Readers.of(), Filters(), service.deadline(), infer=frozenset()
        ),
        message="cantean soup at cantene tables",
    )
    corrected = correct_request(request, MemoryIndex(LONG), lambda word: word == "cantean")
    assert corrected.message == "cantean soup at canteen tables"
