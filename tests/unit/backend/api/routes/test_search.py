"""`POST /api/search`."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from backend.schemas.search import SearchResponse
from backend.search import facets
from backend.search.query_syntax import parse_query
from backend.store.documents import documents
from connectors.access import Readers
from indexing.index.protocols import Filters
from tests.support.groups import save_groups
from tests.unit.backend.api.conftest import (
    SOURCE,
    client_of,
    connected,
    make_container,
    write_files,
)

QUERY = "paid leave of parents"
A_WORD_OF_EACH = "leave class bike interlock note salary"


def _found(client: TestClient, **body: object) -> Any:
    got = client.post("/api/search", json={"query": QUERY, **body})
    assert got.status_code == 200, got.text
    return got.json()


def test_it_finds_what_the_command_finds(client: TestClient, container: Container) -> None:
    service = container.chat.search
    query = parse_query(QUERY)
    request = service.request(query, Readers.of(), Filters(), service.deadline())
    docs = service.find_sections(request, 3)
    expected = SearchResponse.from_docs(query, docs, 0).model_dump(mode="json")["results"]
    assert _found(client, limit=3, explain=True)["results"] == expected
    assert expected[0]["document_id"] == f"{SOURCE}:leave.md"


def test_reasons_are_reported_where_they_are_asked_for(client: TestClient) -> None:
    assert {len(one["why"]) for one in _found(client)["results"]} == {0}
    assert {why["leg"] for why in _found(client, explain=True)["results"][0]["why"]} == {
        "keyword",
        "vector",
    }


def test_a_result_says_where_its_passage_stands(client: TestClient) -> None:
    first = _found(client)["results"][0]
    shown = client.get(f"/api/documents/{first['document_id']}").json()
    start, end = first["span"]
    assert "26 weeks" in shown["sections"][first["section"]]["text"][start:end]


def test_nobody_finds_what_they_may_not_read(client: TestClient, container: Container) -> None:
    pay = f"{SOURCE}:finance/pay.md"

    def ids(of: TestClient) -> set[str]:
        body = of.post("/api/search", json={"query": "salary band of a senior engineer"}).json()
        return {one["document_id"] for one in body["results"]}

    assert pay not in ids(client)
    with client_of(container, "group:finance") as finance:
        assert pay in ids(finance)


def test_what_is_withdrawn_counts_for_the_next_request(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    write_files(folder)
    container, ann = make_container(tmp_path), "user:ann@example.com"
    (folder / "access.yaml").write_text("rules:\n  - match: finance/**\n    readers: []\n")
    connected(container, folder)
    pay = f"{SOURCE}:finance/pay.md"
    held = documents.find_held(container.database, pay)
    assert held
    (finance,) = held.access.readers

    def seen(of: TestClient) -> set[str]:
        body = _found(of, query="salary band of a senior engineer")
        assert set(body["facets"]["sources"].values()) == ({1} if body["results"] else set())
        found = {one["document_id"] for one in body["results"]}
        listed = {one["id"] for one in of.get("/api/documents").json()["documents"]}
        assert found == listed
        shown = of.get(f"/api/documents/{pay}").status_code
        assert (shown == 200) is (pay in found)
        return found

    with client_of(container, ann) as client:
        assert seen(client) == set()
        save_groups(container.database, SOURCE, {finance: ["team"], "team": [ann]})
        assert seen(client) == {pay}
        save_groups(container.database, SOURCE, {finance: ["team"], "team": []})
        assert seen(client) == set()


def test_filters_narrow_and_facets_offer_the_rest(client: TestClient) -> None:
    markdown = {"media_types": ["text/markdown"]}
    body = _found(client, query=A_WORD_OF_EACH, filters=markdown)
    assert {one["media_type"] for one in body["results"]} == {"text/markdown"}
    # Of the five public files two are Markdown; the types are counted as if none were chosen.
    assert body["facets"]["sources"] == {SOURCE: 2}
    assert sum(body["facets"]["media_types"].values()) == 5
    assert sum(body["facets"]["months"].values()) == 2


def test_facets_count_what_may_be_read(client: TestClient, container: Container) -> None:
    assert _found(client, query=A_WORD_OF_EACH)["facets"]["sources"] == {SOURCE: 5}
    with client_of(container, "group:finance") as finance:
        assert _found(finance, query=A_WORD_OF_EACH)["facets"]["sources"] == {SOURCE: 6}


def test_facets_follow_the_words_of_the_query(client: TestClient) -> None:
    body = _found(client, query="bike cage")
    assert {one["document_id"] for one in body["results"]} == {f"{SOURCE}:plain.txt"}
    assert body["facets"]["sources"] == {SOURCE: 1}
    assert body["facets"]["media_types"] == {"text/plain": 1}
    nothing = _found(client, query="zzzqqq xyzzy")["facets"]
    assert [*nothing.values()] == [{}, {}, [], {}, {}]


def test_results_are_grouped_by_document_where_that_is_asked_for(client: TestClient) -> None:
    query = "journeys leave"
    alone = _found(client, query=query)["results"]
    assert all(one["further"] == [] for one in alone)
    grouped = _found(client, query=query, group="document", limit=2)["results"]
    ids = [one["document_id"] for one in grouped]
    assert ids == list(dict.fromkeys(one["document_id"] for one in alone))[:2]
    for one in grouped:
        own = [each for each in alone if each["document_id"] == one["document_id"]]
        assert [{**each, "further": []} for each in [one, *one["further"]]] == own


def test_a_person_is_offered_and_chosen(client: TestClient, container: Container) -> None:
    ann = {"key": "ann@example.com", "name": "Ann Lee", "documents": 1}
    assert _found(client, query=A_WORD_OF_EACH)["facets"]["people"] == [ann]
    by_ann = _found(client, query=A_WORD_OF_EACH, filters={"people": ["ANN@example.com"]})
    assert {one["document_id"] for one in by_ann["results"]} == {f"{SOURCE}:page.html"}
    assert by_ann["facets"]["sources"] == {SOURCE: 1}
    # Who is chosen is counted as if nobody were, so that others can be; nothing is revealed of the rest.
    by_mole = _found(client, query=A_WORD_OF_EACH, filters={"people": ["mole"]})
    assert by_mole["facets"]["people"] == [ann]
    assert by_mole["results"] == []
    with client_of(container, "group:finance") as finance:
        body = _found(finance, query=A_WORD_OF_EACH, filters={"people": [" MOLE "]})
    assert {one["document_id"] for one in body["results"]} == {f"{SOURCE}:finance/pay.md"}
    assert body["facets"]["people"] == [ann, {"key": "mole", "name": "Mole", "documents": 1}]


def test_of_very_many_people_the_foremost_are_reported_and_whoever_is_chosen(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facets, "MOST_PEOPLE", 1)
    with client_of(container, "group:finance") as finance:
        (foremost,) = _found(finance, query=A_WORD_OF_EACH)["facets"]["people"]
        for chosen in ("ann@example.com", "mole"):
            filters = {"people": [chosen]}
            body = _found(finance, query=A_WORD_OF_EACH, filters=filters)["facets"]["people"]
            assert {one["key"] for one in body} <= {chosen, foremost["key"]}
            assert [one["documents"] for one in body if one["key"] == chosen] == [1]


def test_dates_are_days(client: TestClient) -> None:
    assert _found(client, filters={"until": "2001-01-01"})["results"] == []
    assert _found(client, filters={"since": "2001-01-01"})["results"]
    whole = {"since": "0001-01-01", "until": "9999-12-31"}
    assert len(_found(client, query=A_WORD_OF_EACH, filters=whole)["results"]) == 5


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": " \t\n"},
        {"query": "x" * 2001},
        {"query": 7},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 201},
        {"query": "x", "limits": 5},  # a field that is not there is a mistake, and not passed over
        {"query": "x", "filters": {"source": ["wiki"]}},
        {"query": "x", "filters": {"sources": []}},
        {"query": "x", "filters": {"sources": ["a"] * 101}},
        {"query": "x", "filters": {"people": [7]}},
        {"query": "x", "filters": {"since": "yesterday"}},
        {"query": "x", "filters": {"since": 0}},  # no number of seconds
        {"query": "x", "limit": "5"},
        {"query": "x", "explain": "yes"},
        {"query": "x", "group": "source"},
        ["query"],
    ],
)
def test_what_is_not_valid_is_reported_by_its_place(client: TestClient, body: object) -> None:
    refused = client.post("/api/search", json=body)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert all(fault["where"].startswith("body") for fault in refused.json()["errors"])


def test_what_is_no_json_is_not_valid(client: TestClient) -> None:
    json_type = {"content-type": "application/json"}
    assert client.post("/api/search", content=b"{", headers=json_type).status_code == 422
    assert client.post("/api/search", content=b"\xff", headers=json_type).status_code in {400, 422}


def test_what_was_sent_is_not_echoed(client: TestClient) -> None:
    refused = client.post("/api/search", json={"query": "x", "limit": "the secret plan"})
    assert "secret plan" not in refused.text


@pytest.mark.parametrize("query", ["\x00", "\ud800 leave", "🦆" * 500, '"', "a" * 2000, "\u202e"])
def test_odd_texts_are_searched_or_refused(client: TestClient, query: str) -> None:
    json_type = {"content-type": "application/json"}
    got = client.post("/api/search", content=json.dumps({"query": query}), headers=json_type)
    assert got.status_code in {200, 422}, got.text


def test_filters_of_the_query_are_applied_and_returned(client: TestClient) -> None:
    query = 'leave "paid leave" -salary type:markdown before:never'
    answer = client.post("/api/search", json={"query": query}).json()
    assert [one["document_id"] for one in answer["results"]] == [f"{SOURCE}:leave.md"]
    assert [(one["kind"], one["value"]) for one in answer["filters"]] == [
        ("phrase", "paid leave"),
        ("excluded", "salary"),
        ("type", "markdown"),
    ]
    assert answer["filters"][1]["without"] == 'leave "paid leave" type:markdown before:never'
    assert answer["notes"][0].startswith("“never” is no date")


@pytest.mark.parametrize(
    "query",
    ["leave type:pdf", "leave source:none", '"leave paid"', "leave -leave", "leave before:1990"],
)
def test_filters_of_the_query_may_leave_nothing(client: TestClient, query: str) -> None:
    assert client.post("/api/search", json={"query": query}).json()["results"] == []


@pytest.mark.parametrize("query", ["zzzqqq xyzzy", "???", "type:markdown"])
def test_what_stands_nowhere_is_not_found(client: TestClient, query: str) -> None:
    assert client.post("/api/search", json={"query": query}).json()["results"] == []


def test_unknown_words_are_searched_as_the_nearest_known_ones(
    client: TestClient, container: Container
) -> None:
    query = "parentel leave"
    answer = client.post("/api/search", json={"query": query}).json()
    assert answer["corrected"] == "parental leave"
    assert answer["query"] == query
    assert answer["results"][0]["document_id"] == f"{SOURCE}:leave.md"
    verbatim = client.post("/api/search", json={"query": query, "spelling": "verbatim"}).json()
    assert verbatim["corrected"] is None
    # A word of documents that one may not read is led to what one may.
    salery = {"query": "salery"}
    assert client.post("/api/search", json=salery).json()["corrected"] is None
    with client_of(container, "group:finance") as finance:
        assert finance.post("/api/search", json=salery).json()["corrected"] == "salary"


def test_words_are_read_as_filters_and_may_be_taken_as_words(client: TestClient) -> None:
    query = "scanner  codes by Ann Lee"
    answer = client.post("/api/search", json={"query": query}).json()
    assert answer["query"] == query
    assert answer["filters"] == []
    assert answer["inferred"] == [
        {"kind": "person", "words": "by Ann Lee", "span": [14, 24], "meaning": "Ann Lee"}
    ]
    assert answer["results"][0]["document_id"] == f"{SOURCE}:page.html"
    literal = client.post("/api/search", json={"query": query, "infer": ["date"]}).json()
    assert literal["inferred"] == []
    assert {one["document_id"] for one in literal["results"]} <= {
        one["document_id"] for one in answer["results"]
    }
