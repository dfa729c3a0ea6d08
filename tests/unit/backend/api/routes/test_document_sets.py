"""`/api/admin/document-sets`, `/api/document-sets`, and searches in a set."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from backend.store.documents import document_sets
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from backend.web import routes
from tests.support.document_sets import apply_all
from tests.unit.backend.api.conftest import (
    SOURCE,
    api,
    client_of,
    connected,
    make_container,
    ready,
    write_files,
)

SETS = "/api/admin/document-sets"
WORDS = "leave class bike interlock note salary"
FOR_ALL = {"name": "Journeys", "documents": [f"{SOURCE}:travel.md", f"{SOURCE}:finance/pay.md"]}
FOR_FINANCE = {"name": "Money", "folders": [f"{SOURCE}:finance"], "readers": ["group:finance"]}


@pytest.fixture
def container(tmp_path: Path) -> Container:
    folder = tmp_path / "files"
    write_files(folder)
    made = make_container(tmp_path)
    connected(made, folder)
    return made


def _add(container: Container, *bodies: dict[str, Any]) -> None:
    with client_of(container) as client:
        for body in bodies:
            added = client.post(SETS, json=body)
            assert added.status_code == 201, added.text
    apply_all(container.database, container.engine.writer)


def _found(client: TestClient, query: str = WORDS, **filters: object) -> dict[str, Any]:
    got = client.post("/api/search", json={"query": query, "filters": filters})
    assert got.status_code == 200, got.text
    body: dict[str, Any] = got.json()
    return body


def _ids(found: dict[str, Any]) -> set[str]:
    return {one["document_id"].removeprefix(f"{SOURCE}:") for one in found["results"]}


def test_a_set_is_added_shown_changed_and_removed(container: Container) -> None:
    with client_of(container) as client:
        added = client.post(SETS, json=FOR_ALL)
        assert added.headers["location"] == f"{SETS}/Journeys"
        assert added.json()["readers"] == ["public"]
        assert (added.json()["is_applied"], added.json()["count"]) == (False, None)
        assert client.post(SETS, json=FOR_ALL).status_code == 409
        apply_all(container.database, container.engine.writer)
        (listed,) = client.get(SETS).json()
        assert (listed["is_applied"], listed["count"], listed["total"]) == (True, 2, 2)
        counted = client.post(f"{SETS}/count", json={"sources": [SOURCE], "tags": ["a=b"]})
        assert counted.json() == {"documents": 6, "unmatched": ["a=b"]}
        body = {"name": "Trips", "folders": [f"{SOURCE}:finance/"], "description": "x"}
        assert client.put(f"{SETS}/Journeys", json=body).json()["folders"] == ["wiki:finance/"]
        apply_all(container.database, container.engine.writer)
        assert client.get(f"{SETS}/Trips").json()["count"] == 1
        assert client.get(f"{SETS}/Journeys").status_code == 404
        assert client.delete(f"{SETS}/Trips").status_code == 204
        assert client.get(SETS).json() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "#7", "sources": [SOURCE]},
        {"name": "a"},
        {"name": "a", "folders": ["finance/"]},
        {"name": "a", "tags": ["x"]},
        {"name": "a", "sources": [SOURCE], "readers": ["finance"]},
        {"name": "a", "sources": [SOURCE], "more": 1},
    ],
)
def test_what_is_not_valid_is_refused(container: Container, wrong: dict[str, Any]) -> None:
    with client_of(container) as client:
        assert client.post(SETS, json=wrong).status_code == 422
    assert document_sets.list_sets(container.database) == []


def test_a_search_in_a_set_finds_what_is_in_it_and_may_be_read(container: Container) -> None:
    _add(container, FOR_ALL, FOR_FINANCE)
    with client_of(container) as client, client_of(container, "group:finance") as finance:
        assert _ids(_found(client, sets=["Journeys"])) == {"travel.md"}
        assert _ids(_found(finance, sets=["Journeys"])) == {"travel.md", "finance/pay.md"}
        assert _ids(_found(client, f"{WORDS} set:Journeys")) == {"travel.md"}
        assert _ids(_found(client, f'{WORDS} set:"Journeys"', sets=["Journeys"])) == {"travel.md"}
        assert _found(client)["facets"]["sets"] == {"Journeys": 1}
        assert _found(finance)["facets"]["sets"] == {"Journeys": 2, "Money": 1}
        assert _found(finance, sets=["Money"])["facets"]["sets"] == {"Journeys": 2, "Money": 1}
        assert _ids(_found(finance, sets=["Money"])) == {"finance/pay.md"}


def test_a_set_that_is_not_shown_and_one_that_does_not_exist_are_alike(
    container: Container,
) -> None:
    everything = {"name": "Hidden", "sources": [SOURCE], "readers": ["group:finance"]}
    _add(container, everything)
    label = document_sets.find(container.database, "Hidden").label
    with client_of(container) as client:
        assert client.get("/api/document-sets").json() == []
        found = [_found(client, sets=[name]) for name in ("Hidden", "Nothing")]
        assert found[0] | {"seconds": 0} == found[1] | {"seconds": 0}
        assert found[0]["results"] == []
        assert _found(client, "bike cage")["facets"]["sets"] == {}
        # What documents carry is no name.
        refused = client.post("/api/search", json={"query": "bike", "filters": {"sets": [label]}})
        assert refused.status_code == 422
        assert _found(client, f"bike set:{label}")["notes"]
    with client_of(container, "group:finance") as finance:
        assert finance.get("/api/document-sets").json() == [
            {"name": "Hidden", "description": "", "documents": 6}
        ]


def test_a_set_is_counted_as_it_is_now(container: Container, tmp_path: Path) -> None:
    _add(container, {"name": "All", "sources": [SOURCE]})
    (tmp_path / "files" / "new.md").write_text("# New\n\nA page that is new.\n")
    source = sources.find(container.database, SOURCE)
    connector, pipeline = container.sources.connector(source), container.sources.pipeline(source)
    assert list(sync(container.database, source, connector, pipeline))
    with client_of(container) as client:
        assert client.get(f"{SETS}/All").json()["count"] == 7
        assert _ids(_found(client, "a page that is new", sets=["All"])) >= {"new.md"}


def test_a_set_counts_to_each_what_they_may_read(container: Container) -> None:
    _add(container, FOR_ALL | {"description": "Far away"}, {"name": "None", "tags": ["a=b"]})
    with client_of(container) as client, client_of(container, "group:finance") as finance:
        (one, none) = client.get("/api/document-sets").json()
        assert one == {"name": "Journeys", "description": "Far away", "documents": 1}
        assert none == {"name": "None", "description": "", "documents": 0}
        assert finance.get("/api/document-sets").json()[0]["documents"] == 2


def test_the_search_page_offers_sets_and_keeps_the_chosen_one(container: Container) -> None:
    _add(container, FOR_ALL)
    app = api(container)
    routes.mount(app)
    with ready(app) as client:
        page = client.get("/", params={"q": WORDS}).text
        assert "set=Journeys" in page
        chosen = client.get("/", params={"q": WORDS, "set": "Journeys"}).text
        assert "Remove Set: Journeys" in chosen
        assert '<input type="hidden" name="set" value="Journeys">' in chosen
        assert "journeys above four hours" in chosen
        assert "26 weeks" not in chosen


def test_a_question_is_answered_from_a_set(container: Container) -> None:
    _add(container, FOR_ALL)
    body = {"question": "For which journeys is first class?", "filters": {"sets": ["Journeys"]}}
    with client_of(container) as client:
        events = client.post("/api/ask", json=body).text
        assert '"sets": ["Journeys"]' in events.replace('":[', '": [')
        other = body | {"question": "How many weeks of paid leave?"}
        assert "26 weeks" not in client.post("/api/ask", json=other).text
