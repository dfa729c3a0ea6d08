"""Bodies of searches: what a person says stands in them as a value, never as syntax."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.access import Readers
from indexing.index.protocols import DateRange, Filters, TextConditions
from indexing.opensearch import access_filter, query_bodies
from indexing.text import tokenizer
from indexing.text.analysis import BY_LANGUAGE
from indexing.text.languages import LANGUAGES

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
    # Every filter, 16 phrases and very many words: 960 + 16 + 16, and the cluster counts a range as two.
    x = frozenset({"x"})
    project, persona = Filters(project_id_filter=x), Filters(persona_id_filter=x)
    everything = Filters(
        sources=x,
        sets=x,
        tags=x,
        people=x,
        media_types=x,
        document_ids=x,
        project_id_filter=x,
        persona_id_filter=x,
        created=DateRange(since=MAY),
        updated=DateRange(until=MAY),
        any_of=(Filters(sources=x, sets=x), project, persona, Filters(document_ids=x)),
    )
    scope = access_filter.filter_conditions(ANN, everything)
    phrases = [[f"p{n}", "q"] for n in range(tokenizer.MOST_EXACT_TERMS)]
    words = [(f"w{n}", f"de/w{n}") for n in range(5_000)]
    body = query_bodies.exact_query(phrases, words, scope, 100)
    assert len(list(_leaves(body))) == 992 <= 1_024 - 2


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


# What is sent to the cluster

SCOPE = access_filter.filter_conditions(ANN, Filters())
READERS = {"terms": {"readers": ["public", "user:ann@example.com"]}}
CANDIDATES = {
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["chunk", "boost"],
    "track_total_hits": False,
}


def _score(conditions: list[Any]) -> dict[str, Any]:
    return {
        "script_score": {
            "query": {"bool": {"filter": conditions}},
            "script": {
                "lang": "knn",
                "source": "knn_score",
                "params": {
                    "field": "vector",
                    "query_value": [1.0, 0.0],
                    "space_type": "innerproduct",
                },
            },
        }
    }


def test_the_scope_is_a_condition_of_a_search_by_words() -> None:
    words = [("b",)]
    assert query_bodies.keyword_query(words, SCOPE, 7) == CANDIDATES | {
        "size": 7,
        "query": {"bool": {"must": [query_bodies.any_word(words)], "filter": [READERS]}},
    }


def test_the_scope_is_a_condition_of_a_search_of_all_vectors() -> None:
    assert query_bodies.full_vector_query([1.0, 0.0], SCOPE, 7) == CANDIDATES | {
        "size": 7,
        "query": _score([{"term": {"kind": "chunk"}}, READERS]),
    }


def test_the_scope_is_a_condition_of_a_search_for_phrases() -> None:
    body = query_bodies.exact_query([["px"]], [], SCOPE, 7)
    must = body["query"]["bool"].pop("must")
    assert must[0]["bool"]["minimum_should_match"] == 1
    assert body == {
        "size": 7,
        "query": {"bool": {"filter": [READERS]}},
        "_source": ["place.embedded"],
        "docvalue_fields": ["boost"],
        "track_total_hits": False,
    }


def test_chunks_are_compared_with_a_vector_by_their_ids() -> None:
    ids = ["k.v.0", "k.v.1"]
    assert query_bodies.cosine_query(ids, [1.0, 0.0]) == CANDIDATES | {
        "size": 2,
        "docvalue_fields": ["chunk"],
        "query": _score([{"ids": {"values": ids}}]),
    }


def test_a_text_condition_is_a_phrase_that_must_or_must_not_occur() -> None:
    wanted = TextConditions(("Travel costs", "..."), ("night", "by day"))
    assert query_bodies.text_conditions(wanted) == [
        {"match_phrase": {"plain": "travel costs"}},
        {
            "bool": {
                "must_not": [{"term": {"plain": "night"}}, {"match_phrase": {"plain": "by day"}}]
            }
        },
    ]
    assert query_bodies.text_conditions(TextConditions()) == []


def test_a_word_is_found_in_its_forms_and_near_its_spelling() -> None:
    assert query_bodies.match_inflections("costs", ["cost", "de/cost"]) == {
        "bool": {
            "should": [
                {"term": {"plain": "costs"}},
                {"term": {"words": "cost"}},
                {"term": {"words": "de/cost"}},
            ],
            "minimum_should_match": 1,
        }
    }
    assert query_bodies.near_word("cots", 2) == {
        "fuzzy": {"plain": {"value": "cots", "fuzziness": 2, "transpositions": True}}
    }


def test_whether_any_chunk_matches_is_asked_within_the_scope() -> None:
    condition = {"term": {"plain": "travel"}}
    assert query_bodies.existence_query(condition, SCOPE) == {
        "size": 0,
        "track_total_hits": 1,
        "terminate_after": 1,
        "query": {"bool": {"filter": [condition, READERS]}},
    }


def test_places_of_matches_are_asked_within_the_scope() -> None:
    condition = {"term": {"plain": "travel"}}
    assert query_bodies.positions_of_matches_query(condition, SCOPE, 7) == {
        "size": 7,
        "_source": ["key", "position"],
        "track_total_hits": False,
        "query": {"bool": {"filter": [condition, READERS]}},
    }
    assert query_bodies.read_places([{"_source": {"key": "k", "position": 3}}]) == [("k", 3)]


def test_how_often_words_occur_is_counted_once_for_each() -> None:
    counted = {"size": 0, "track_total_hits": True}
    assert query_bodies.term_count_query([("a", "b"), ("a", "b")], ["e", "22"]) == counted | {
        "query": {
            "bool": {
                "filter": [{"match_phrase": {"plain": "e 22"}}, {"terms": {"words": ["a", "b"]}}]
            }
        }
    }
    assert query_bodies.chunk_count_query() == counted | {
        "query": {"bool": {"filter": [{"term": {"kind": "chunk"}}]}}
    }


def test_records_come_only_to_their_readers_in_the_wanted_versions() -> None:
    body = query_bodies.records_query(["k", "l"], ANN)
    assert body["query"] == {"bool": {"filter": [access_filter.readable_records(["k", "l"], ANN)]}}
    assert body["size"] == 2
    assert body["track_total_hits"] is False
    assert {"key", "kind", "version", "said.access", "said.hidden"} <= set(body["_source"])
    restricted = query_bodies.restrict_to_versions(body, ["w", "v"])
    assert restricted == body | {
        "query": {"bool": {"filter": [body["query"], {"terms": {"version": ["v", "w"]}}]}}
    }


def test_positions_are_asked_with_the_records_that_show_who_may_read_them() -> None:
    body = query_bodies.positions_query({"k": [(3, 5), (7, 2**80)], "l": [(0, 1)]}, ANN, 10)

    def interval(key: str, start: int, end: int) -> dict[str, Any]:
        place = {"range": {"position": {"gte": start, "lt": end}}}
        return {"bool": {"filter": [{"term": {"key": key}}, place]}}

    assert body["size"] == 10
    assert body["query"]["bool"]["filter"] == [
        {
            "bool": {
                "should": [
                    interval("k", 3, 5),
                    interval("k", 7, 2**31 - 1),
                    interval("l", 0, 1),
                    access_filter.readable_records(["k", "l"], ANN),
                ],
                "minimum_should_match": 1,
            }
        }
    ]


def test_facets_and_languages_are_counted_for_the_asker_alone() -> None:
    document = {"term": {"kind": "document"}}
    counted = {"size": 0, "track_total_hits": False}
    assert query_bodies.facets_query(
        ANN, Filters(sets=frozenset({"hr"})), {"tags": 5}
    ) == counted | {
        "query": {
            "bool": {
                "filter": [
                    document,
                    {"range": {"chunks": {"gt": 0}}},
                    READERS,
                    {"terms": {"sets": ["hr"]}},
                ]
            }
        },
        "aggs": {"tags": {"terms": {"field": "tags", "size": 5}}},
    }
    assert query_bodies.languages_query(ANN) == counted | {
        "query": {"bool": {"filter": [document, {"exists": {"field": "languages"}}, READERS]}},
        "aggs": {"languages": {"terms": {"field": "languages", "size": len(LANGUAGES)}}},
    }
