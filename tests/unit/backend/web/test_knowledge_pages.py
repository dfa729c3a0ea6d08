"""The pages of kept knowledge: what is listed, searched, read, corrected, deleted and imported; of what is hidden nothing."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.api.app import Api
from backend.container import Container
from backend.research.knowledge.kept_knowledge import LearnedItem
from backend.research.knowledge.service import add_items
from backend.research.knowledge_items import KnowledgeType
from backend.store.accounts import people
from backend.store.owner import ConversationOwner
from backend.store.research.knowledge_records import OWN
from tests.support.knowledge import learn, make_item, make_reference
from tests.unit.backend.api.conftest import ready
from tests.unit.backend.web.conftest import ANN, BOB

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def clients(browse: Any) -> Iterator[dict[str, TestClient]]:
    with ExitStack() as stack:
        made: dict[str, TestClient] = {email: browse(email) for email in (ANN, BOB)}
        for client in made.values():
            stack.enter_context(ready(cast("Api", client.app)))
        yield made


def _keep(container: Container, email: str, *learned: LearnedItem) -> list[str]:
    owner = ConversationOwner(people.get_by_email(container.database, email).id)
    return add_items(container.database, owner, OWN, learned)


def _post(client: TestClient, path: str, **fields: str) -> Any:
    shown = client.get("/knowledge").text
    token = shown.partition('name="csrf-token" content="')[2].partition('"')[0]
    return client.post(f"/knowledge{path}", data={"csrf_token": token, **fields})


def test_findings_are_listed_read_corrected_and_deleted(
    container: Container, clients: dict[str, TestClient]
) -> None:
    ann, bob = clients[ANN], clients[BOB]
    assert "Nothing yet." in ann.get("/knowledge").text
    hidden = learn("Band five earns 60.", "wiki:pay.md")
    web = make_reference("It rains.", "It rains.", None, url="https://sky.example/lyon")
    script = make_reference("It rains.", "It rains.", None, url="javascript:alert(1)", title="Bad")
    item = make_item(HOSTILE, "It rains.", web, script, kind=KnowledgeType.URL)
    rain, leave, _ = _keep(
        container, ANN, LearnedItem(item=item), learn("Leave is 25 days."), hidden
    )
    shown = ann.get("/knowledge").text
    assert "Leave is 25 days." in shown
    assert "From the web" in shown
    assert "<script>alert" not in shown
    assert "Band five" not in shown
    assert "It rains." not in bob.get("/knowledge").text
    found = ann.get("/knowledge", params={"q": "it rains"}).text
    assert ("It rains." in found, "25 days" in found) == (True, False)
    one = ann.get(f"/knowledge/{rain}").text
    assert 'href="https://sky.example/lyon"' in one
    assert "javascript:" not in one
    assert "<script>alert" not in one
    assert bob.get(f"/knowledge/{rain}").status_code == 404
    for path in (f"/{leave}", f"/{leave}/delete", "/never-was", "/never-was/delete"):
        assert _post(bob, path, question="Mine?", answer="Mine.").status_code == 404
    assert _post(ann, f"/{leave}", question="How long?", answer="28 days.").status_code == 303
    changed = ann.get(f"/knowledge/{leave}").text
    assert "28 days." in changed
    assert "Corrected" in changed
    assert _post(ann, f"/{leave}/delete").status_code == 303
    assert ann.get(f"/knowledge/{leave}").status_code == 404


def test_one_whose_document_was_deleted_says_so_and_nothing_else(
    container: Container, clients: dict[str, TestClient]
) -> None:
    (gone,) = _keep(container, ANN, learn("Band five earns 60.", "wiki:never-was.md"))
    for path in ("/knowledge", f"/knowledge/{gone}"):
        shown = clients[ANN].get(path).text
        assert "A finding whose document was deleted" in shown
        assert "Stale" in shown
        assert "Band five" not in shown
    assert _post(clients[ANN], f"/{gone}", question="a", answer="b").status_code == 409
    assert _post(clients[ANN], f"/{gone}/delete").status_code == 303


def test_what_is_refused_says_why(container: Container, clients: dict[str, TestClient]) -> None:
    (item,) = _keep(container, ANN, learn("Leave is 25 days."))
    refused = _post(clients[ANN], f"/{item}", question="How long?", answer=" \u200b ")
    assert refused.status_code == 422
    assert "need visible characters" in refused.text
    refused = _post(clients[ANN], "/import", file='{"items": [{}]}')
    assert refused.status_code == 422
    assert "This is no knowledge that Quarry exported" in refused.text


def test_a_file_is_imported_and_what_was_dropped_is_said(
    container: Container, clients: dict[str, TestClient]
) -> None:
    _keep(container, ANN, learn("Leave is 25 days."))
    file = clients[ANN].get("/api/knowledge/export").text
    done = _post(clients[BOB], "/import", file=file)
    assert done.status_code == 303
    assert done.headers["location"] == "/knowledge?added=1&dropped=0"
    shown = clients[BOB].get(done.headers["location"]).text
    assert "One finding was imported." in shown
    assert "dropped" not in shown
    assert "Leave is 25 days." in shown
    both = clients[BOB].get("/knowledge?added=2&dropped=3").text
    assert "2 findings were imported. 3 references were dropped" in both


def test_a_long_list_has_pages(container: Container, clients: dict[str, TestClient]) -> None:
    _keep(container, ANN, *(learn(f"Fact number {number}.") for number in range(31)))
    first = clients[ANN].get("/knowledge").text
    assert "Fact number 30." in first
    assert "Fact number 0." not in first
    link = first.partition('href="/knowledge?before=')[2].partition('"')[0]
    following = clients[ANN].get(f"/knowledge?before={link}").text
    assert "Fact number 0." in following
    assert "Earlier findings" not in following


def test_the_chat_leads_to_the_page(clients: dict[str, TestClient]) -> None:
    assert 'href="/knowledge"' in clients[ANN].get("/chat").text
