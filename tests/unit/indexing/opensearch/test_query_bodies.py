"""Bodies of searches: what a person says stands in them as a value, never as syntax."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.access import Readers
from indexing.index.protocols import DateRange, Filters
from indexing.opensearch import query_bodies
from indexing.opensearch.naming import document_key
from indexing.text import tokenizer

ANN = Readers.of("user:ann@example.com")
MAY = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def _leaves(body: Any) -> Iterator[tuple[str, Any]]:
    """Yield every leaf query with its type."""
    if isinstance(body, list):
        for each in body:
            yield from _leaves(each)
    elif isinstance(body, dict):
        for kind, inner in body.items():
            if kind in {"term", "terms", "range", "ids", "match_phrase"}:
                yield kind, inner
            else:
                yield from _leaves(inner)


def test_whoever_asks_is_a_condition_and_so_is_each_filter() -> None:
    filters = Filters(
        sources=frozenset({"wiki"}),
        sets=frozenset({"hr", "it"}),
        tags=frozenset({"lang=en"}),
        people=frozenset({"bob", "ann@example.com"}),
        media_types=frozenset(),
        document_ids=frozenset({"a"}),
        created=DateRange(since=MAY),
        updated=DateRange(since=MAY, until=MAY + timedelta(microseconds=1)),
    )
    assert query_bodies.filter_conditions(ANN, filters) == [
        {"terms": {"readers": ["public", "user:ann@example.com"]}},
        {"terms": {"source": ["wiki"]}},
        {"terms": {"media_type": []}},
        {"terms": {"sets": ["hr", "it"]}},
        {"terms": {"tags": ["lang=en"]}},
        {"terms": {"people": ["ann@example.com", "bob"]}},
        {"terms": {"key": [document_key("a")]}},
        {"range": {"created": {"gte": 1_000_000}}},
        {"range": {"updated": {"gte": 1_000_000, "lt": 1_000_001}}},
    ]


def test_without_filters_only_the_readers_count() -> None:
    assert query_bodies.filter_conditions(Readers(frozenset()), Filters()) == [
        {"terms": {"readers": []}}
    ]


@pytest.mark.parametrize("name", ["a\0", "a\ud800"])
def test_a_value_that_cannot_be_stored_matches_nothing(name: str) -> None:
    held = Filters(document_ids=frozenset({name}), sources=frozenset({name}))
    readers = Readers(frozenset({f"group:{name}"}))
    assert [
        list(each["terms"].values()) for each in query_bodies.filter_conditions(readers, held)
    ] == [[[]]] * 3


def test_more_values_than_one_condition_takes_are_divided() -> None:
    values = [f"{n:06}" for n in range(query_bodies.MAX_TERMS + 1)]
    parts = query_bodies.any_of("source", values)["bool"]["should"]
    assert [len(part["terms"]["source"]) for part in parts] == [query_bodies.MAX_TERMS, 1]
    assert sorted(value for part in parts for value in part["terms"]["source"]) == values


@given(st.text(max_size=200))
def test_words_are_passed_to_a_query_unchanged(text: str) -> None:
    body = query_bodies.keyword_query(
        tokenizer.words(text), query_bodies.filter_conditions(ANN, Filters()), 10
    )
    asked = [inner["words"] for kind, inner in _leaves(body) if kind == "term"]
    found = [each if isinstance(each, str) else each["value"] for each in asked]
    assert found == list(dict.fromkeys(tokenizer.words(text)))
    json.dumps(body).encode()


def test_a_repeated_word_counts_twice() -> None:
    assert query_bodies.any_word(["b", "a", "b"])["bool"]["should"] == [
        {"term": {"words": {"value": "b", "boost": 2.0}}},
        {"term": {"words": "a"}},
    ]


def test_of_very_many_words_only_the_first_are_used() -> None:
    words = [f"w{n}" for n in range(5_000)]
    asked = query_bodies.any_word(words)["bool"]["should"]
    assert [each["term"]["words"] for each in asked] == words[: query_bodies.MAX_WORDS]


def test_no_search_has_more_clauses_than_the_cluster_takes() -> None:
    # Every filter, 16 phrases and very many words: 960 + 16 + 9, and the cluster counts a range as two.
    everything = Filters(
        **{
            name: frozenset({"x"})
            for name in ("sources", "sets", "tags", "people", "media_types", "document_ids")
        },
        created=DateRange(since=MAY),
        updated=DateRange(until=MAY),
    )
    scope = query_bodies.filter_conditions(ANN, everything)
    phrases = [[f"p{n}", "q"] for n in range(tokenizer.MOST_EXACT_TERMS)]
    body = query_bodies.exact_query(phrases, [f"w{n}" for n in range(5_000)], scope, 100)
    assert len(list(_leaves(body))) == 985 <= 1_024 - 2


def test_more_phrases_weigh_more_than_all_words() -> None:
    body = query_bodies.exact_query([["e", "22"], ["px"]], ["valve"], [], 100)
    (held,) = body["query"]["bool"]["must"]
    assert held["bool"]["should"] == [
        {"constant_score": {"filter": {"match_phrase": {"plain": "e 22"}}, "boost": 10_000.0}},
        {"constant_score": {"filter": {"term": {"plain": "px"}}, "boost": 10_000.0}},
    ]
    assert body["query"]["bool"]["should"] == [query_bodies.any_word(["valve"])]


def test_the_scope_is_a_condition_inside_the_search_by_vector() -> None:
    scope = query_bodies.filter_conditions(ANN, Filters())
    asked = query_bodies.graph_vector_query([1.0, 0.0], scope, 200)
    assert asked["query"]["knn"]["vector"] == {
        "vector": [1.0, 0.0],
        "k": 200,
        "filter": {"bool": {"filter": scope}},
    }
    assert asked["size"] == 200


def test_a_document_comes_only_to_its_readers() -> None:
    body = query_bodies.chunks_and_records_query(["k.v.0"], ["k"], ANN)
    chunks, documents = body["query"]["bool"]["filter"][0]["bool"]["should"]
    assert chunks == {"ids": {"values": ["k.v.0"]}}
    assert documents["bool"]["filter"] == [
        {"ids": {"values": ["k"]}},
        {"term": {"kind": "document"}},
        {"terms": {"readers": ["public", "user:ann@example.com"]}},
    ]
    assert body["size"] == 2


def test_a_range_ends_where_positions_do() -> None:
    body = query_bodies.positions_query({"k": [(3, 2**80)]}, ANN, 10)
    assert ("range", {"position": {"gte": 3, "lt": 2**31 - 1}}) in list(_leaves(body))
