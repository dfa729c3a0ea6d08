"""Which searches the queries of one call come to, and what is read from their answers."""

from typing import Any

from connectors.document import Readers
from indexing.index.protocols import IndexQuery
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.retrieval import EVERYTHING, Asked, Leg, Legs, Scales
from indexing.opensearch.search_requests import Answer
from tests.support.chunks import query, vector

PLAIN = Scales(bm25=1.0, product=1.0)


def _legs(*asked: IndexQuery, common: frozenset[str] = frozenset()) -> Legs:
    ready = [Asked.of(each, Readers.of(), VectorSettings()) for each in asked]
    return Legs(ready, "graph", PLAIN, common)


def _asked_for(legs: Legs) -> set[Leg]:
    return set(dict(legs._bodies()))


def _answer(hits: list[dict[str, Any]] | None = None, total: int = 0) -> Answer:
    return Answer(hits or [], total, partial=False, facets={})


def test_a_leg_without_a_share_is_not_asked_for() -> None:
    v = vector("v")
    assert _asked_for(
        _legs(
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
    assert _asked_for(_legs(coded, coded, quoted)) == {
        ("keyword", 0),
        ("keyword", 1),
        ("keyword", 2),
        ("exact", 0),
        ("exact", 1),
        ("exact", 2),
        ("holders", "E-22"),
        ("holders", EVERYTHING),
    }


def test_a_term_that_is_known_to_be_common_is_not_asked_for_again() -> None:
    asked = query("E-22", exact=("E-22",))
    assert _asked_for(_legs(asked, common=frozenset({"E-22"}))) == {("keyword", 0)}


def test_only_the_exact_legs_that_a_common_term_was_in_are_asked_again() -> None:
    legs = _legs(
        query("E-22 PX-44", exact=("E-22", "PX-44")),
        query("PX-44", exact=("PX-44",)),
        query("E-22", exact=("E-22",)),
    )
    again = dict(legs._exact_again(frozenset({"E-22"})))
    assert set(again) == {("exact", 0)}
    (held,) = again["exact", 0]["query"]["bool"]["must"]
    assert [each["constant_score"]["filter"] for each in held["bool"]["should"]] == [
        {"match_phrase": {"plain": "px 44"}}
    ]


def test_what_holds_only_the_words_of_a_term_does_not_match() -> None:
    def hit(chunk: str, text: str) -> dict[str, Any]:
        source = {"place": {"embedded": text}}
        return {"_id": chunk, "_score": 10_001.0, "_source": source, "fields": {"boost": [2.0]}}

    answers = {("exact", 0): _answer([hit("a", "E-22 here"), hit("b", "E-22.1")])}
    boosts: dict[str, float] = {}
    legs = _legs(query("E-22", exact=("E-22",)))
    found = legs._candidates(0, answers, boosts, ["E-22"])  # type: ignore[arg-type]
    assert {chunk: match.terms for chunk, match in found.exact.items()} == {"a": 1}
    assert boosts == {"a": 2.0}
    assert legs._candidates(0, answers, boosts, []).exact == {}  # type: ignore[arg-type]
