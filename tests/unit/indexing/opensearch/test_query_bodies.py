"""Bodies of searches: what a person says stands in them as a value, never as syntax."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.access import Readers
from indexing.index.protocols import DateRange, Filters
from indexing.opensearch import access_filter, query_bodies
from indexing.text import tokenizer
from indexing.text.analysis import BY_LANGUAGE

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


@given(st.text(max_size=200))
def test_words_are_passed_to_a_query_unchanged(text: str) -> None:
    words = BY_LANGUAGE.query_words(text, frozenset({"de"}))
    body = query_bodies.keyword_query(words, access_filter.filter_conditions(ANN, Filters()), 10)
    asked = [inner["words"] for kind, inner in _leaves(body) if kind == "term"]
    found = [each if isinstance(each, str) else each["value"] for each in asked]
    assert found == list(dict.fromkeys(chain.from_iterable(words)))
    json.dumps(body).encode()


def test_a_repeated_word_counts_twice() -> None:
    assert query_bodies.any_word([("b",), ("a", "de/a"), ("b",)])["bool"]["should"] == [
        {"term": {"words": {"value": "b", "boost": 2.0}}},
        {"term": {"words": "a"}},
        {"term": {"words": "de/a"}},
    ]


def test_of_very_many_words_only_the_first_are_used() -> None:
    words = [f"w{n}" for n in range(5_000)]
    asked = query_bodies.any_word([(word,) for word in words])["bool"]["should"]
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
    scope = access_filter.filter_conditions(ANN, everything)
    phrases = [[f"p{n}", "q"] for n in range(tokenizer.MOST_EXACT_TERMS)]
    words = [(f"w{n}", f"de/w{n}") for n in range(5_000)]
    body = query_bodies.exact_query(phrases, words, scope, 100)
    assert len(list(_leaves(body))) == 985 <= 1_024 - 2


def test_more_phrases_weigh_more_than_all_words() -> None:
    body = query_bodies.exact_query([["e", "22"], ["px"]], [("valve",)], [], 100)
    (held,) = body["query"]["bool"]["must"]
    assert held["bool"]["should"] == [
        {"constant_score": {"filter": {"match_phrase": {"plain": "e 22"}}, "boost": 10_000.0}},
        {"constant_score": {"filter": {"term": {"plain": "px"}}, "boost": 10_000.0}},
    ]
    assert body["query"]["bool"]["should"] == [query_bodies.any_word([("valve",)])]


def test_the_scope_is_a_condition_inside_the_search_by_vector() -> None:
    scope = access_filter.filter_conditions(ANN, Filters())
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
