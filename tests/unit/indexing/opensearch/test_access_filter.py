"""Who asks is a condition of every search, and what comes back is checked against the record of its document."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.access import Readers
from indexing.index.protocols import DateRange, Filters
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch import access_filter
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import (
    Version,
    chunk_source,
    document_source,
    record_of,
)
from indexing.opensearch.search_requests import SearchResponse
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, chunk, document

ANN = Readers.of("user:ann@example.com")
MAY = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_whoever_asks_is_a_condition_and_so_is_each_filter() -> None:
    filters = Filters(
        sources=frozenset({"wiki"}),
        sets=frozenset({"hr", "it"}),
        tags=frozenset({"lang=en"}),
        people=frozenset({"bob", "ann@example.com"}),
        media_types=frozenset(),
        document_ids=frozenset({"a"}),
        project_id_filter=frozenset({"7"}),
        persona_id_filter=frozenset({"9", "8"}),
        created=DateRange(since=MAY),
        updated=DateRange(since=MAY, until=MAY + timedelta(microseconds=1)),
    )
    assert access_filter.filter_conditions(ANN, filters) == [
        {"terms": {"readers": ["public", "user:ann@example.com"]}},
        {"terms": {"source": ["wiki"]}},
        {"terms": {"media_type": []}},
        {"terms": {"sets": ["hr", "it"]}},
        {"terms": {"tags": ["lang=en"]}},
        {"terms": {"people": ["ann@example.com", "bob"]}},
        {"terms": {"projects": ["7"]}},
        {"terms": {"personas": ["8", "9"]}},
        {"terms": {"key": [document_key("a")]}},
        {"range": {"created": {"gte": 1_000_000}}},
        {"range": {"updated": {"gte": 1_000_000, "lt": 1_000_001}}},
    ]


def test_without_filters_only_the_readers_count() -> None:
    assert access_filter.filter_conditions(Readers(frozenset()), Filters()) == [
        {"terms": {"readers": []}}
    ]


def _prepared(name: str, **fields: Any) -> PreparedReplace:
    ((item,),) = prepare_batches(
        [document(name, "one", "two", **fields)], DIMENSION, BatchLimits(1, 9), BY_LANGUAGE
    )
    assert isinstance(item, PreparedReplace)
    return item


def _response(*sources: dict[str, Any]) -> SearchResponse:
    return SearchResponse(
        [{"_id": source.get("chunk", source["key"]), "_source": source} for source in sources],
        0,
        partial=False,
        facets={},
    )


def test_a_chunk_counts_if_its_document_came_and_names_its_version() -> None:
    item = _prepared("a")
    old, new = record_of(item, Version("old", 2)), record_of(item, Version("new", 2))
    other = record_of(_prepared("b"), Version("new", 2))
    chunks = [chunk_source(record, item, 0) for record in (old, new)]
    shown = dict(access_filter.read_visible([_response(*chunks, document_source(new))]))
    assert list(shown) == [f"{new.key}.new.0"]
    assert dict(access_filter.read_visible([_response(*chunks)])) == {}
    assert dict(access_filter.read_visible([_response(*chunks, document_source(other))])) == {}


def test_a_chunk_has_the_present_properties_of_its_document() -> None:
    item = _prepared("a", boost=1.0)
    record = record_of(item, Version("v", 2))
    amended = record_of(_prepared("a", boost=3.0, sets=frozenset({"hr"})), Version("v", 2))
    response = _response(document_source(amended), chunk_source(record, item, 1))
    ((_, shown),) = access_filter.read_visible([response])
    assert shown.chunk == chunk("a", 1, "two", boost=3.0, sets=frozenset({"hr"}))
    assert shown.words == "two"


def test_a_filter_of_sets_holds_for_what_the_document_says() -> None:
    record = record_of(_prepared("a", sets=frozenset({"hr", "it"})), Version("v", 2))
    known, name = {record.key: document_source(record)}, f"{record.key}.v.0"
    assert access_filter.is_visible(name, known, Filters())
    assert access_filter.is_visible(name, known, Filters(sets=frozenset({"it", "x"})))
    assert not access_filter.is_visible(name, known, Filters(sets=frozenset({"x"})))
    assert not access_filter.is_visible(name, known, Filters(sets=frozenset()))
    assert not access_filter.is_visible(f"{record.key}.w.0", known, Filters())
    assert not access_filter.is_visible("other.v.0", known, Filters())


@pytest.mark.parametrize("name", ["a\0", "a\ud800"])
def test_a_value_that_cannot_be_stored_matches_nothing(name: str) -> None:
    held = Filters(document_ids=frozenset({name}), sources=frozenset({name}))
    readers = Readers(frozenset({f"group:{name}"}))
    assert [
        list(each["terms"].values()) for each in access_filter.filter_conditions(readers, held)
    ] == [[[]]] * 3


def test_more_values_than_one_condition_takes_are_divided() -> None:
    values = [f"{n:06}" for n in range(access_filter.MAX_TERMS + 1)]
    parts = access_filter.any_of("source", values)["bool"]["should"]
    assert [len(part["terms"]["source"]) for part in parts] == [access_filter.MAX_TERMS, 1]
    assert sorted(value for part in parts for value in part["terms"]["source"]) == values
    assert access_filter.any_of("source", values[1:]) == {"terms": {"source": values[1:]}}


def test_what_holds_none_of_the_values_is_accepted() -> None:
    assert access_filter.none_of("kind", ["b", "a"]) == {
        "bool": {"must_not": [{"terms": {"kind": ["a", "b"]}}]}
    }


def test_one_part_suffices() -> None:
    parts: list[dict[str, Any]] = [{"term": {"a": 1}}, {"term": {"b": 2}}]
    assert access_filter.match_any(parts) == {"bool": {"should": parts, "minimum_should_match": 1}}


@pytest.mark.parametrize(
    ("field", "name"), [("projects", "project_id_filter"), ("personas", "persona_id_filter")]
)
def test_filters_of_projects_and_assistants_hold_for_what_the_document_says(
    field: str, name: str
) -> None:
    record = record_of(_prepared("a", **{field: frozenset({"1", "2"})}), Version("v", 2))
    chunk_name = f"{record.key}.v.0"
    known = {record.key: document_source(record)}
    for wanted, expected in ((("2", "x"), True), (("x",), False), ((), False)):
        narrowed: dict[str, Any] = {name: frozenset(wanted)}
        filters = Filters(**narrowed)
        assert access_filter.is_visible(chunk_name, known, filters) is expected
    # A record of before there were any says nothing of them.
    former = {key: value for key, value in document_source(record).items() if key != field}
    assert access_filter.is_visible(chunk_name, {record.key: former}, Filters())
    one: dict[str, Any] = {name: frozenset({"1"})}
    asked = Filters(**one)
    assert not access_filter.is_visible(chunk_name, {record.key: former}, asked)
