"""The pages of document sets."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from backend.store import audit
from backend.store.documents import document_sets
from backend.store.documents.document_set_rules import RuleKind, SetRule
from backend.store.documents.source_removal import remove_source
from backend.store.sync import sources
from tests.unit.backend.web.conftest import ANN

FORM = {
    "name": "Policies",
    "description": "What everybody has to know",
    "shown": "some",
    "readers": " group:hr \n\nuser:bo@example.com",
    "source": "handbook",
    "folders": "handbook:people/\n",
    "tags": "team=people",
    "documents": "handbook:a.md\r\nhandbook:b.md",
}


@pytest.fixture
def admin(browse: Any, container: Container) -> TestClient:
    if not sources.list_sources(container.database):
        sources.add(container.database, "handbook", "folder", {"path": "/srv/handbook"})
    client: TestClient = browse(ANN)
    return client


def test_a_set_is_added_changed_and_removed(container: Container, admin: TestClient) -> None:
    assert "There are none yet" in admin.get("/sets").text
    added = admin.post("/sets", data=FORM)
    assert added.headers["location"] == "/set/Policies"
    (found,) = document_sets.list_sets(container.database)
    assert found.values.readers == {"group:hr", "user:bo@example.com"}
    assert set(found.values.rules) == {
        SetRule(RuleKind.SOURCE, "", "handbook"),
        SetRule(RuleKind.FOLDER, "people/", "handbook"),
        SetRule(RuleKind.TAG, "team=people", None),
        SetRule(RuleKind.DOCUMENT, "handbook:a.md", "handbook"),
        SetRule(RuleKind.DOCUMENT, "handbook:b.md", "handbook"),
    }
    for path in ("/sets", "/sets/table", "/set/Policies", "/set/Policies/state"):
        shown = admin.get(path)
        assert shown.status_code == 200
        assert "as soon as a worker is free" in shown.text
    page = admin.get("/set/Policies").text
    assert "<li><bdi>handbook:a.md</bdi></li>" in page
    assert "handbook:a.md\nhandbook:b.md</textarea>" in page
    assert 'value="handbook" checked' in page
    # It is removed only once a dialog was answered that says what is lost.
    assert 'data-asks="Policies" data-dialog="removing-set"' in page
    assert '<dialog id="removing-set"' in page
    changed = admin.post("/set/Policies", data=FORM | {"name": "Rules & more", "shown": "all"})
    assert changed.headers["location"] == "/set/Rules%20%26%20more"
    assert "Rules &amp; more" in admin.get(changed.headers["location"]).text
    assert document_sets.find(container.database, "Rules & more").values.readers == {"public"}
    gone = admin.post("/set/Rules%20%26%20more/remove")
    assert gone.headers["location"] == "/sets"
    assert document_sets.list_sets(container.database) == []
    assert admin.get("/set/Policies").status_code == 404
    actions = [entry.action for entry in audit.list_entries(container.database)][:3]
    assert actions == ["remove_set", "change_set", "add_set"]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "#1"}, "begins with no #"),
        ({"name": "a/b"}, "contains no slash"),
        ({"folders": "people/"}, "A folder is written as handbook:people/"),
        ({"tags": "people"}, "A tag is written as team=people"),
        ({"documents": "wiki:1"}, "There is no source named"),
        ({"readers": "hr"}, "To whom the set is shown"),
        (
            {"source": "", "folders": "", "tags": "", "documents": ""},
            "There is no source named",
        ),
    ],
)
def test_what_is_wrong_is_said_and_what_was_written_stays(
    container: Container, admin: TestClient, wrong: dict[str, str], sentence: str
) -> None:
    refused = admin.post("/sets", data=FORM | wrong)
    assert refused.status_code == 422
    assert sentence in refused.text
    assert "What everybody has to know" in refused.text
    assert document_sets.list_sets(container.database) == []


def test_a_set_whose_sources_were_deleted_says_so_and_can_be_saved(
    container: Container, admin: TestClient
) -> None:
    admin.post("/sets", data=FORM | {"tags": ""})
    sources.add(container.database, "wiki", "folder", {"path": "/srv/wiki"})
    remove_source(container.database, "handbook")
    for path in ("/sets", "/sets/table", "/set/Policies", "/set/Policies/state"):
        assert "Nothing belongs to it: its sources were deleted" in admin.get(path).text
    bare = {name: FORM[name] for name in ("name", "shown", "readers")}
    saved = admin.post("/set/Policies", data=bare | {"description": "Of before"})
    assert saved.status_code == 303
    assert document_sets.find(container.database, "Policies").values.description == "Of before"


def test_documents_are_counted_before_anything_is_saved(
    container: Container, admin: TestClient
) -> None:
    counted = admin.post("/sets", data=FORM | {"count": "yes"})
    assert "These rules select 0 documents. Nothing is saved yet." in counted.text
    unmatched = "<li><bdi>handbook:people/</bdi></li>"
    assert "No document matches these rules now:" in counted.text
    assert unmatched in counted.text
    assert document_sets.list_sets(container.database) == []
