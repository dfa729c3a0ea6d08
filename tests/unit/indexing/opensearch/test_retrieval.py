"""Which searches the queries of one call require, and what is read from their responses."""

from typing import Any

from connectors.access import Readers
from indexing.index.protocols import IndexQuery
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.retrieval import (
    ALL_CHUNKS,
    LANGUAGES,
    PreparedQuery,
    Retriever,
    ScoreScales,
    SearchKey,
    Wording,
)
from indexing.opensearch.search_requests import SearchResponse
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import query, vector

NEUTRAL = ScoreScales(bm25=1.0, product=1.0)


def _retriever(*queries: IndexQuery, common: frozenset[str] = frozenset()) -> Retriever:
    wording = Wording(BY_LANGUAGE, Readers.of())
    prepared = [PreparedQuery.of(each, wording, VectorSettings()) for each in queries]
    return Retriever(prepared, wording, "graph", NEUTRAL, common)


def _searches(retriever: Retriever) -> set[SearchKey]:
    """Those beside the one that finds the languages."""
    return set(dict(retriever._searches())) - {LANGUAGES}


def _response(hits: list[dict[str, Any]] | None = None, total: int = 0) -> SearchResponse:
    return SearchResponse(hits or [], total, partial=False, facets={})


def test_a_search_without_weight_is_not_sent() -> None:
    v = vector("v")
    assert _searches(
        _retriever(
            query("refund", vector=v, alpha=0.0),
            query("refund", vector=v, alpha=0.5),
            query("refund", vector=v, alpha=1.0),
            query("refund", vector=None, alpha=0.5),
            query("the", vector=None),
        )
    ) == {("keyword", 0), ("keyword", 1), ("vector", 1), ("vector", 2), ("keyword", 3)}


def test_codes_are_counted_once_for_all_queries_and_quoted_phrases_not_at_all() -> None:
    coded = query("E-22 valve", exact=("E-22",))
    quoted = query("annual leave", exact=("annual leave", "?!"))
    assert _searches(_retriever(coded, coded, quoted)) == {
        ("keyword", 0),
        ("keyword", 1),
        ("keyword", 2),
        ("exact", 0),
        ("exact", 1),
        ("exact", 2),
        ("count", "E-22"),
        ("count", ALL_CHUNKS),
    }


def test_a_term_known_to_be_common_is_not_searched_again() -> None:
    asked = query("E-22", exact=("E-22",))
    assert _searches(_retriever(asked, common=frozenset({"E-22"}))) == {("keyword", 0)}


def test_only_exact_searches_with_a_common_term_are_repeated() -> None:
    retriever = _retriever(
        query("E-22 PX-44", exact=("E-22", "PX-44")),
        query("PX-44", exact=("PX-44",)),
        query("E-22", exact=("E-22",)),
    )
    again = dict(retriever._repeated_exact_searches(frozenset({"E-22"})))
    assert set(again) == {("exact", 0)}
    (matches,) = again["exact", 0]["query"]["bool"]["must"]
    assert [each["constant_score"]["filter"] for each in matches["bool"]["should"]] == [
        {"match_phrase": {"plain": "px 44"}}
    ]


def test_what_holds_only_the_words_of_a_term_does_not_match() -> None:
    def hit(chunk: str, text: str) -> dict[str, Any]:
        source = {"place": {"embedded": text}}
        return {"_id": chunk, "_score": 10_001.0, "_source": source, "fields": {"boost": [2.0]}}

    responses: dict[SearchKey, SearchResponse] = {
        ("exact", 0): _response([hit("a", "E-22 here"), hit("b", "E-22.1")])
    }
    boosts: dict[str, float] = {}
    retriever = _retriever(query("E-22", exact=("E-22",)))
    found = retriever._read_candidates(0, responses, boosts, ["E-22"])
    assert {chunk: match.terms for chunk, match in found.exact.items()} == {"a": 1}
    assert boosts == {"a": 2.0}
    assert retriever._read_candidates(0, responses, boosts, []).exact == {}
