"""Kept knowledge over HTTP: for whoever may read now all that it rests on."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.api.routes import knowledge as routes
from backend.research.knowledge.kept_knowledge import ImportedItem
from backend.research.knowledge.service import add_items
from backend.schemas.knowledge import import_knowledge
from backend.store.chat import projects
from backend.store.research import knowledge
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from tests.support.conversations import START, begin
from tests.support.knowledge import forget_findings, learn
from tests.unit.backend.api.conftest import client_of, make_container
from tests.unit.backend.api.routes.test_sharing import (
    BOB,
    CID,
    LEAVE,
    PAY,
    World,
    make_worlds,
)

KNOWLEDGE = "/api/knowledge"
WEEKS, BAND = "Parents have 26 weeks of paid leave.", "A senior engineer is in band five."


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[World]:
    yield from make_worlds(make_container(tmp_path_factory.mktemp("knowledge")), folder)


@pytest.fixture(autouse=True)
def _forget(world: World) -> Iterator[None]:
    yield
    forget_findings(world.container.database)


def _keep(world: World, email: str, text: str, *documents: str, place: KnowledgePlace = OWN) -> str:
    database = world.container.database
    learned = learn(text, *documents, question=f"What of this: {text}")
    (made,) = add_items(database, world.owner(email), place, [learned])
    return made


def _project(world: World, owner: str, *members: str) -> KnowledgePlace:
    database = world.container.database
    made = projects.add(database, world.owner(owner), "Depot", "", START)
    for email in members:
        projects.add_member(database, made, email)
    return KnowledgePlace("project", made)


def _list(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(KNOWLEDGE, params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_an_item_is_listed_searched_read_corrected_and_deleted(world: World) -> None:
    bob = world.clients[BOB]
    weeks = _keep(world, BOB, WEEKS, LEAVE)
    _keep(world, BOB, "It rains in Lyon.")
    listed = _list(bob)
    assert [one["answer"] for one in listed] == ["It rains in Lyon.", WEEKS]
    assert [one["answer"] for one in _list(bob, query="Weeks of paid leave")] == [WEEKS]
    read = bob.get(f"{KNOWLEDGE}/{weeks}").json()
    assert read == listed[1]
    assert (read["stale"], read["from_web"], read["document_ids"]) == (None, False, [LEAVE])
    assert (read["place"], read["place_id"], read["may_change"]) == ("own", None, True)
    assert read["references"][0]["exact_quote"] == WEEKS
    changed = bob.patch(f"{KNOWLEDGE}/{weeks}", json={"answer": "28 weeks."}).json()
    assert (changed["answer"], changed["references"]) == ("28 weeks.", [])
    assert changed["corrected_at"] is not None
    assert bob.delete(f"{KNOWLEDGE}/{weeks}").status_code == 204
    assert bob.get(f"{KNOWLEDGE}/{weeks}").status_code == 404


def test_who_may_not_read_a_source_is_told_nothing(world: World) -> None:
    place = _project(world, BOB, CID)
    band = _keep(world, BOB, BAND, PAY, place=place)
    _keep(world, BOB, WEEKS, LEAVE, place=place)
    bob, cid = world.clients[BOB], world.clients[CID]
    assert len(_list(bob, project_id=place.id)) == 2
    answers = {
        client: client.get(KNOWLEDGE, params={"project_id": place.id}).text for client in (bob, cid)
    }
    assert "band five" in answers[bob]
    assert "band five" not in answers[cid]
    assert json.loads(answers[cid])["next"] is None
    assert _list(cid, query="In which band is a senior engineer?") == []
    assert "band five" not in cid.get(f"{KNOWLEDGE}/export").text
    refused = set()
    for item_id in (band, "never-was"):
        path = f"{KNOWLEDGE}/{item_id}"
        for answer in (cid.get(path), cid.patch(path, json={"answer": "x"}), cid.delete(path)):
            refused.add((answer.status_code, answer.text))
    ((status, body),) = refused
    assert (status, json.loads(body)["detail"]) == (404, "There is no such item.")
    world.groups.add_member("finance", CID)
    try:
        assert len(_list(cid, project_id=place.id)) == 2
        forbidden = cid.patch(f"{KNOWLEDGE}/{band}", json={"answer": "x"})
        assert forbidden.status_code == 403
        assert "Only the person whose finding this is" in forbidden.json()["detail"]
    finally:
        world.groups.remove_member("finance", CID)
    assert len(_list(cid, project_id=place.id)) == 1


def test_the_list_has_pages(world: World) -> None:
    bob = world.clients[BOB]
    added = [_keep(world, BOB, f"Fact {number}.") for number in range(5)]
    found: list[str] = []
    before = None
    while True:
        page = bob.get(KNOWLEDGE, params={"limit": 2, **({"before": before} if before else {})})
        found += [one["id"] for one in page.json()["items"]]
        if (before := page.json()["next"]) is None:
            break
    assert found == added[::-1]
    refused = bob.get(KNOWLEDGE, params={"before": "yesterday"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "before is not valid.")


def test_what_is_exported_is_imported_where_one_says(world: World) -> None:
    bob, cid = world.clients[BOB], world.clients[CID]
    _keep(world, BOB, WEEKS, LEAVE)
    _keep(world, BOB, BAND, PAY)
    exported = bob.get(f"{KNOWLEDGE}/export")
    assert exported.headers["content-disposition"] == 'attachment; filename="knowledge.json"'
    file = exported.json()
    assert (file["version"], len(file["items"])) == (1, 2)
    conversation = begin(world.container.database, owner=world.owner(BOB)).question.conversation_id
    into = {"conversation_id": conversation}
    report = bob.post(KNOWLEDGE, json=file, params=into)
    assert report.status_code == 201, report.text
    assert len(report.json()["ids"]) == 2
    assert bob.get(f"{KNOWLEDGE}/export", params=into).json() == file
    assert bob.post(KNOWLEDGE, json=file, params={"conversation_id": "x"}).status_code == 404
    assert cid.post(KNOWLEDGE, json=file, params=into).status_code == 404
    both = into | {"project_id": "x"}
    assert bob.get(KNOWLEDGE, params=both).status_code == 422
    # Who may not read the salary bands is told no more of them than of what does not exist.
    forbidden = cid.post(KNOWLEDGE, json=file).json()
    assert (forbidden["dropped_references"], forbidden["unverified"]) == (1, 1)
    assert [one["stale"] for one in _list(cid)] == ["unverified", None]
    assert [one["document_ids"] for one in _list(cid)] == [[], [LEAVE]]


@pytest.mark.parametrize(
    "body",
    [{}, {"answer": " \u200b "}, {"answer": "x" * 400_001}, {"mood": "good"}, {"question": 7}],
)
def test_what_cannot_be_kept_is_refused(world: World, body: object) -> None:
    item = _keep(world, BOB, WEEKS)
    assert world.clients[BOB].patch(f"{KNOWLEDGE}/{item}", json=body).status_code == 422
    assert [one["answer"] for one in _list(world.clients[BOB])] == [WEEKS]


def test_a_long_file_does_not_hold_up_other_requests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str | bytes) -> list[ImportedItem]:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return import_knowledge(text)

    monkeypatch.setattr(routes, "import_knowledge", read)
    answer = world.clients[BOB].post(KNOWLEDGE, json={"items": [{"question": "x"}]})
    assert answer.status_code == 422
    assert "items 1 answer: Field required" in answer.json()["detail"]


def test_what_is_no_exported_file_is_refused(world: World) -> None:
    wrong: tuple[object, ...] = ({"items": [{}]}, {"items": [], "version": 2}, [])
    for body in wrong:
        assert world.clients[BOB].post(KNOWLEDGE, json=body).status_code == 422
    item = {"question": "half \ud800", "answer": "x", "type": "qa"}
    sent = json.dumps({"items": [item]})
    headers = {"content-type": "application/json"}
    assert world.clients[BOB].post(KNOWLEDGE, content=sent, headers=headers).status_code == 422
    assert _list(world.clients[BOB]) == []


def test_a_full_place_says_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _keep(world, BOB, WEEKS)
    monkeypatch.setattr(knowledge, "MOST_ITEMS", 1)
    file = world.clients[BOB].get(f"{KNOWLEDGE}/export").json()
    refused = world.clients[BOB].post(KNOWLEDGE, json=file)
    assert refused.status_code == 409
    assert "Delete some that you do not need any more" in refused.json()["detail"]


def test_a_token_of_a_service_finds_nothing_out(world: World) -> None:
    token = ApiTokenService(world.container.database).create(
        "bot", [TokenScope.ASK], timedelta(days=1)
    )
    headers = {"Authorization": f"Bearer {token}"}
    assert world.clients[BOB].get(KNOWLEDGE, headers=headers).status_code == 403


def test_the_person_at_the_machine_has_findings_of_their_own(tmp_path: Path) -> None:
    with client_of(make_container(tmp_path)) as client:
        item = {"question": "Is it?", "answer": "It is.", "type": "qa"}
        made = client.post(KNOWLEDGE, json={"items": [item]})
        assert made.status_code == 201
        assert [one["answer"] for one in _list(client)] == ["It is."]
