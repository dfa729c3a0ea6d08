"""The page of what Quarry remembers: what is listed, added, changed and deleted; of others' nothing."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.api.app import Api
from backend.container import Container
from backend.store.accounts import people
from backend.store.chat import memories
from backend.store.owner import ConversationOwner
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


def _list(container: Container, email: str) -> list[str]:
    owner = ConversationOwner(people.get_by_email(container.database, email).id)
    return [one.id for one in memories.list_page(container.database, owner, None, 9)]


def _post(client: TestClient, path: str, **fields: str) -> tuple[int, str]:
    shown = client.get("/memories").text
    token = shown.partition('name="csrf-token" content="')[2].partition('"')[0]
    answer = client.post(f"/memories{path}", data={"csrf_token": token, **fields})
    return answer.status_code, answer.text


def test_what_is_remembered_is_added_changed_and_deleted(
    container: Container, clients: dict[str, TestClient]
) -> None:
    ann, bob = clients[ANN], clients[BOB]
    assert "Nothing yet." in ann.get("/memories").text
    assert _post(ann, "", text="I sit in Leeds.")[0] == 303
    assert _post(ann, "", text=HOSTILE)[0] == 303
    shown = ann.get("/memories").text
    assert "I sit in Leeds." in shown
    assert "<script>alert" not in shown
    assert "I sit in Leeds." not in bob.get("/memories").text
    hostile, office = _list(container, ANN)
    for path in (f"/{office}", f"/{office}/delete", "/never-was", "/never-was/delete"):
        assert _post(bob, path, text="Mine.")[0] == 404
    assert _post(ann, f"/{office}", text="I sit in Graz.")[0] == 303
    assert "I sit in Graz." in ann.get("/memories").text
    assert _post(ann, f"/{hostile}/delete")[0] == 303
    assert _list(container, ANN) == [office]
    assert _post(bob, "", text="Denver.")[0] == 303
    assert _post(ann, "/delete")[0] == 303
    assert (_list(container, ANN), len(_list(container, BOB))) == ([], 1)


def test_what_is_refused_says_why_and_keeps_what_was_entered(
    clients: dict[str, TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = clients[ANN]
    status, shown = _post(ann, "", text="\u0958" * 2_000)
    assert status == 422
    assert "A memory has at most 2,000 characters, these are 4,000." in shown
    assert "\u0958" * 2_000 in shown
    monkeypatch.setattr(memories, "MOST_MEMORIES", 1)
    assert _post(ann, "", text="One.")[0] == 303
    status, shown = _post(ann, "", text="Two.")
    assert status == 409
    assert "You have 1 memories already." in shown
    assert ">Two.</textarea>" in shown


def test_the_chat_leads_to_the_page(clients: dict[str, TestClient]) -> None:
    assert 'href="/memories"' in clients[ANN].get("/chat").text
