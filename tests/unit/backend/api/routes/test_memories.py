"""Memories over HTTP, and answers that rest on them: shown to their owner alone, and to nobody once one is deleted."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.chat.readable_ids import make_memory_reference
from backend.conversations.answer_gate import WITHHELD
from backend.store.chat import memories, projects
from backend.store.chat.new_messages import ConversationSetting, NewQuestion, begin_conversation
from tests.support.conversations import START, begin, finish, make_answer, writer
from tests.unit.backend.api.conftest import SOURCE, client_of, make_container
from tests.unit.backend.api.routes.test_sharing import ANN, BOB, CID, World, make_worlds

MEMORIES = "/api/memories"
LEAVE = f"{SOURCE}:leave.md"
TEXT, SECRET = "I sit in the Leeds office.", "Your office is in Leeds"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[World]:
    yield from make_worlds(make_container(tmp_path_factory.mktemp("memories")), folder)


@pytest.fixture(autouse=True)
def _forget(world: World) -> Iterator[None]:
    yield
    for email in (ANN, BOB, CID):
        memories.remove_all(world.container.database, world.owner(email))


def _add(client: TestClient, text: str = TEXT) -> str:
    answer = client.post(MEMORIES, json={"text": text})
    assert answer.status_code == 201, answer.text
    memory_id: str = answer.json()["id"]
    return memory_id


def _list(client: TestClient, **query: Any) -> Any:
    answer = client.get(MEMORIES, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_memory_is_added_listed_changed_and_deleted(world: World) -> None:
    bob = world.clients[BOB]
    first, second = _add(bob), _add(bob, "  Cafe\u0301 at\r\nnoon  ")
    assert [one["text"] for one in _list(bob)["memories"]] == ["Caf\u00e9 at\nnoon", TEXT]
    changed = bob.patch(f"{MEMORIES}/{first}", json={"text": "I sit in Graz."}).json()
    assert (changed["id"], changed["text"]) == (first, "I sit in Graz.")
    assert changed["updated_at"] > changed["created_at"]
    assert [one["id"] for one in _list(bob)["memories"]] == [second, first]
    assert bob.delete(f"{MEMORIES}/{second}").status_code == 204
    assert [one["id"] for one in _list(bob)["memories"]] == [first]
    _add(world.clients[CID])
    assert bob.delete(MEMORIES).status_code == 204
    assert _list(bob)["memories"] == []
    assert len(_list(world.clients[CID])["memories"]) == 1


def test_the_list_has_pages(world: World) -> None:
    bob = world.clients[BOB]
    added = [_add(bob, f"Fact {number}.") for number in range(5)]
    found: list[str] = []
    before = None
    while True:
        page = _list(bob, limit=2, **({"before": before} if before else {}))
        found += [one["id"] for one in page["memories"]]
        if (before := page["next"]) is None:
            break
    assert found == added[::-1]
    refused = bob.get(MEMORIES, params={"before": "yesterday"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "before is not valid.")


def test_anothers_and_a_missing_one_are_answered_alike(world: World) -> None:
    of_bob = _add(world.clients[BOB])
    answers = set()
    for email in (ANN, CID):
        for memory_id in (of_bob, "never-was"):
            path = f"{MEMORIES}/{memory_id}"
            changed = world.clients[email].patch(path, json={"text": "Mine."})
            for answer in (changed, world.clients[email].delete(path)):
                answers.add((answer.status_code, answer.text))
    ((status, body),) = answers
    assert (status, json.loads(body)["detail"]) == (404, "There is no such memory.")
    assert [one["text"] for one in _list(world.clients[BOB])["memories"]] == [TEXT]


@pytest.mark.parametrize("text", ["", " \u200b ", "x" * 2_001, "\u0958" * 2_000, None, 7])
def test_what_cannot_be_remembered_is_refused(world: World, text: object) -> None:
    refused = world.clients[BOB].post(MEMORIES, json={"text": text})
    assert refused.status_code == 422
    assert _list(world.clients[BOB])["memories"] == []


def test_the_limit_says_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_MEMORIES", 1)
    _add(world.clients[BOB])
    refused = world.clients[BOB].post(MEMORIES, json={"text": "More."})
    assert refused.status_code == 409
    assert "Delete some that you do not need any more" in refused.json()["detail"]
    _add(world.clients[CID])


def test_a_token_of_a_service_remembers_nothing(world: World) -> None:
    token = ApiTokenService(world.container.database).create(
        "bot", [TokenScope.ASK], timedelta(days=1)
    )
    bot = {"Authorization": f"Bearer {token}"}
    assert world.clients[BOB].get(MEMORIES, headers=bot).status_code == 403


def test_the_person_at_the_machine_has_memories_of_their_own(tmp_path: Path) -> None:
    container = make_container(tmp_path)
    with client_of(container) as client:
        memory_id = _add(client)
        assert [one["id"] for one in _list(client)["memories"]] == [memory_id]


def _answered(
    world: World,
    email: str,
    *rests_on: str,
    project_id: str | None = None,
    cites: tuple[str, ...] = (LEAVE,),
) -> tuple[str, int]:
    """A conversation whose answer rests on these ids."""
    database, question = world.container.database, "Where is my office?"
    if project_id is None:
        begun = begin(database, question, world.owner(email))
    else:
        begun = begin_conversation(
            database,
            world.owner(email),
            question,
            NewQuestion(text=question, filters={}),
            writer(),
            ConversationSetting(project_id=project_id),
        )
    answer = make_answer(f"{SECRET} [[1]](https://wiki.example.com/1).", *cites)
    finish(database, begun.answer.id, answer["answer"], rests_on, answer)
    return begun.question.conversation_id, begun.answer.id


def _own_answer(client: TestClient, conversation: str) -> Any:
    opened = client.get(f"/api/conversations/{conversation}")
    assert opened.status_code == 200, opened.text
    return opened.json()["messages"][1]


def _share(world: World, email: str, conversation: str, message: int) -> str:
    path = f"/api/conversations/{conversation}/share"
    shared = world.clients[email].post(path, json={"message_id": message})
    assert shared.status_code == 200, shared.text
    link: str = shared.json()["id"]
    return link


def _remembered(world: World) -> tuple[str, str, int]:
    """A memory of Bob, and a conversation of his whose answer rests on it and on what everybody may read."""
    memory_id = _add(world.clients[BOB])
    conversation, message = _answered(world, BOB, make_memory_reference(memory_id), LEAVE)
    return memory_id, conversation, message


def test_the_owner_sees_an_answer_until_the_memory_is_deleted(world: World) -> None:
    bob = world.clients[BOB]
    memory_id, conversation, _ = _remembered(world)
    assert SECRET in _own_answer(bob, conversation)["text"]
    bob.patch(f"{MEMORIES}/{memory_id}", json={"text": "I sit in Graz."})
    assert SECRET in _own_answer(bob, conversation)["text"]
    bob.delete(f"{MEMORIES}/{memory_id}")
    _add(bob)
    withheld = _own_answer(bob, conversation)
    assert (withheld["withheld"], withheld["notice"], withheld["text"]) == (True, WITHHELD, "")
    exported = bob.get(f"/api/conversations/{conversation}/export").text
    assert SECRET not in exported
    assert WITHHELD in exported


def test_a_reader_of_a_shared_conversation_gets_the_usual_sentence(world: World) -> None:
    _, conversation, message = _remembered(world)
    link = _share(world, BOB, conversation, message)
    for email in (CID, ANN):
        opened = world.clients[email].get(f"/api/shared/{link}")
        answer = opened.json()["messages"][1]
        assert (answer["withheld"], answer["notice"]) == (True, WITHHELD)
        assert SECRET not in opened.text
        assert SECRET not in world.clients[email].get(f"/api/shared/{link}/export").text
        assert world.clients[email].post(f"/api/shared/{link}/copy").status_code == 409
    assert SECRET in world.clients[BOB].get(f"/api/shared/{link}").text


def test_a_reader_with_memories_of_their_own_sees_no_more(world: World) -> None:
    _add(world.clients[CID])
    _, conversation, message = _remembered(world)
    link = _share(world, BOB, conversation, message)
    assert SECRET not in world.clients[CID].get(f"/api/shared/{link}").text


def test_a_copy_of_the_owner_goes_with_the_memory(world: World) -> None:
    bob = world.clients[BOB]
    memory_id, conversation, message = _remembered(world)
    link = _share(world, BOB, conversation, message)
    copied = bob.post(f"/api/shared/{link}/copy")
    assert copied.status_code == 201
    copy = copied.json()["id"]
    assert SECRET in _own_answer(bob, copy)["text"]
    bob.delete(f"{MEMORIES}/{memory_id}")
    for one in (conversation, copy):
        assert _own_answer(bob, one)["notice"] == WITHHELD


def test_members_of_a_project_and_admins_see_nothing_of_it(world: World) -> None:
    database, bob = world.container.database, world.owner(BOB)
    project = projects.add(database, bob, "Depot", "", START)
    projects.add_member(database, project, CID)
    memory_id = _add(world.clients[BOB])
    conversation, message = _answered(
        world, BOB, make_memory_reference(memory_id), project_id=project
    )
    seen = world.clients[CID].get(f"/api/projects/{project}/conversations/{conversation}")
    assert seen.status_code == 200, seen.text
    assert WITHHELD in seen.text
    assert SECRET not in seen.text
    rated = f"/api/conversations/{conversation}/messages/{message}/feedback"
    assert world.clients[BOB].put(rated, json={"rating": "good"}).status_code == 204
    reviewed = world.clients["admin"].get("/api/admin/feedback", params={"limit": 1}).json()
    assert (reviewed["feedback"][0]["notice"], reviewed["feedback"][0]["answer"]) == (
        WITHHELD,
        None,
    )
    assert f"answer-{message}" not in world.clients["admin"].get("/api/admin/feedback/export").text


def test_a_memory_is_no_document_that_answers_a_question(world: World) -> None:
    admin = world.clients[ANN]
    reference = make_memory_reference(_add(admin))
    conversation, message = _answered(world, ANN, reference, LEAVE, cites=(reference, LEAVE))
    rated = f"/api/conversations/{conversation}/messages/{message}/feedback"
    assert admin.put(rated, json={"rating": "good"}).status_code == 204
    exported = world.clients["admin"].get("/api/admin/feedback/export").text
    lines = {one["_id"]: one for one in map(json.loads, exported.splitlines())}
    assert lines[f"answer-{message}"]["judgments"] == {LEAVE: 1}


def test_what_may_be_read_without_memories_is_as_it_was(world: World) -> None:
    conversation, message = _answered(world, BOB, LEAVE)
    link = _share(world, BOB, conversation, message)
    assert SECRET in world.clients[CID].get(f"/api/shared/{link}").text
