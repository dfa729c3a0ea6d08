"""Conversations over HTTP: asked, followed from any event, stopped, and gated by what the asker may read now."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.api.account_authentication import AccountCookies, AccountPresence
from backend.api.app import Api, create_app
from backend.api.request_pools import FairPool, PoolLimits
from backend.cli.server import Owner, make_authenticator
from backend.container import Container
from backend.conversations.answer_gate import WITHHELD
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.chat import summaries, turns
from backend.store.chat.summaries import Summary
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from indexing.runtime.deadline import CancelToken
from tests.support.accounts import add_person
from tests.support.scripted_model import (
    Call,
    Manner,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)
from tests.support.serving import Event, events
from tests.unit.backend.api.conftest import (
    ADDRESS,
    SOURCE,
    PoolRecord,
    client_of,
    connected,
    make_container,
)

QUESTION = "In which salary band is a senior engineer?"
ANSWER = "A senior engineer is in band five [1]. The band was raised."
PAY = f"{SOURCE}:finance/pay.md"
ANN, BOB, GONE = (f"{name}@example.com" for name in ("ann", "bob", "gone"))
SOON = 30.0
BASE = "/api/conversations"


class Writer:
    """A model that searches, then writes; held until it is let go on, if a test says so."""

    def __init__(self) -> None:
        self.answer: Reply = Say(ANSWER)
        self.without_search: Reply | None = None
        self.held = threading.Event()
        self.may_write = threading.Event()
        self.may_write.set()

    def __call__(self, request: Request) -> Reply:
        if request.has_sources:
            self.held.set()
            assert self.may_write.wait(SOON)
            return self.answer
        if self.without_search is not None and request.answers:
            return self.without_search
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["salary band"]}))
        return Say("salary band engineer")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def modelled(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, server: ScriptedModel
) -> Container:
    """One with accounts: Ann is an admin, Bob is in the group that reads the salary bands."""
    home = tmp_path_factory.mktemp("conversations")
    container = make_container(home, llm_url=server.base_url, llm_model="scripted")
    connected(container, folder)
    add_person(container.database, ANN, Role.ADMIN)
    groups = GroupService(container.database)
    groups.create("finance")
    for email in (BOB, GONE):
        add_person(container.database, email)
        groups.add_member("finance", email)
    return container


@pytest.fixture(scope="module")
def app(modelled: Container) -> Iterator[Api]:
    with _serve(modelled) as app:
        yield app


@contextmanager
def _serve(container: Container) -> Iterator[Api]:
    """A server process, from when it is ready until it has stopped."""
    secret = container.sign_in.machine_secret
    cookies = AccountCookies.of_machine(secret)
    accounts = AccountPresence(lambda: people.has_people(container.database))
    owner = Owner(secret, Readers.of())
    app = create_app(
        container, make_authenticator(lambda: container.database, owner, cookies, accounts)
    )
    with TestClient(app, base_url=ADDRESS):
        assert app.state.app_state.warmup.ready.wait(60)
        yield app


def _client_of(app: Api, container: Container, owner: Person | None) -> TestClient:
    service = ApiTokenService(container.database, owner=owner)
    name = f"token-{time.monotonic_ns()}"
    given = service.create(name, [TokenScope.ASK], timedelta(days=1))
    return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {given}"})


@pytest.fixture(scope="module")
def bob(app: Api, modelled: Container) -> TestClient:
    return _client_of(app, modelled, people.get_by_email(modelled.database, BOB))


@pytest.fixture(scope="module")
def ann(app: Api, modelled: Container) -> TestClient:
    return _client_of(app, modelled, people.get_by_email(modelled.database, ANN))


@pytest.fixture
def writer(server: ScriptedModel) -> Iterator[Writer]:
    writer = Writer()
    server.play(writer)
    server.requests.clear()
    yield writer
    writer.may_write.set()


@pytest.fixture
def groups(modelled: Container) -> Iterator[GroupService]:
    """What a test changes is put right again."""
    service = GroupService(modelled.database)
    yield service
    service.add_member("finance", BOB)


def _begin(client: TestClient, question: str = QUESTION) -> tuple[str, int]:
    begun = client.post(BASE, json={"question": question})
    assert begun.status_code == 202, begun.text
    body = begun.json()
    assert body["answer"]["status"] == "running"
    assert body["answer"]["parent_id"] == body["question"]["id"]
    return body["conversation"]["id"], body["answer"]["id"]


def _follow(client: TestClient, conversation: str, message: int, after: int = 0) -> list[Event]:
    headers = {"Last-Event-ID": str(after)} if after else {}
    answer = client.get(f"{BASE}/{conversation}/messages/{message}/events", headers=headers)
    assert answer.status_code in {200, 204}, answer.text
    return list(events(answer.text.splitlines()))


def _open(client: TestClient, conversation: str, **query: object) -> Any:
    answer = client.get(f"{BASE}/{conversation}", params=query)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return answer.json()


def _answered(client: TestClient, question: str = QUESTION) -> tuple[str, int]:
    conversation, message = _begin(client, question)
    assert _follow(client, conversation, message)[-1].name == "done"
    return conversation, message


def _wait_for_status(client: TestClient, conversation: str, status: str) -> Any:
    end = time.monotonic() + SOON
    while True:
        last = _open(client, conversation)["messages"][-1]
        if last["status"] == status:
            return last
        assert time.monotonic() < end, last
        time.sleep(0.05)


def test_an_answer_is_followed_and_kept(bob: TestClient, writer: Writer) -> None:
    del writer
    conversation, message = _begin(bob)
    streamed = _follow(bob, conversation, message)
    assert [event.id for event in streamed] == list(range(1, len(streamed) + 1))
    assert streamed[-1].name == "done"
    opened = _open(bob, conversation)
    question, answer = opened["messages"]
    assert (question["text"], question["status"], question["siblings"]) == (
        QUESTION,
        None,
        [question["id"]],
    )
    assert answer["answer"] == streamed[-1].data["answer"]
    assert answer["html"] == streamed[-1].data["html"]
    assert answer["text"] == "".join(one.data["text"] for one in streamed if one.name == "text")
    assert not answer["withheld"]
    assert opened["conversation"]["title"] == QUESTION
    assert opened["conversation"]["title_by"] == "words"
    assert not opened["conversation"]["running"]


def test_whoever_comes_again_receives_exactly_the_rest(bob: TestClient, writer: Writer) -> None:
    del writer
    conversation, message = _begin(bob)
    whole = _follow(bob, conversation, message)
    for cut in range(1, len(whole)):
        assert _follow(bob, conversation, message, cut) == whole[cut:]
    path = f"{BASE}/{conversation}/messages/{message}/events"
    assert bob.get(path, params={"after": len(whole)}).status_code == 204


def test_the_answer_is_written_though_nobody_follows(bob: TestClient, writer: Writer) -> None:
    writer.may_write.clear()
    conversation, message = _begin(bob)
    assert writer.held.wait(SOON)
    writer.may_write.set()
    answer = _wait_for_status(bob, conversation, "finished")
    assert answer["id"] == message
    assert answer["answer"]["citations"][0]["document_id"] == PAY


def test_a_stopped_answer_keeps_what_was_written(
    bob: TestClient,
    modelled: Container,
    server: ScriptedModel,
    writer: Writer,
    groups: GroupService,
) -> None:
    pieces = ["A senior ", "engineer [1] ", "earns ", "more"]
    writer.answer = Say(pieces, manner=Manner(stall_after=4))
    server.hung_up.clear()
    conversation, message = _begin(bob)
    path = f"{BASE}/{conversation}/messages/{message}"
    _wait_until_written(modelled, conversation, message, "earns")
    assert bob.post(f"{path}/stop").status_code == 202
    streamed = _follow(bob, conversation, message)
    assert streamed[-1].name == "stopped"
    assert server.hung_up.wait(SOON)
    answer = _wait_for_status(bob, conversation, "stopped")
    assert re.match(r"A senior engineer \[\[1\]\]\(\S+\) earns", answer["text"])
    assert answer["html"].startswith("<p>A senior engineer [[1]]")
    assert answer["notice"] == "The answer was stopped."
    (cited,) = answer["answer"]["citations"]
    assert (cited["document_id"], cited["verdict"]) == (PAY, "unchecked")
    assert [one["number"] for one in answer["answer"]["references"]] == [1]
    exported = bob.get(f"{BASE}/{conversation}/export").text
    assert "A senior engineer [1] earns" in exported
    assert "## References\n\n1. [" in exported
    assert bob.post(f"{path}/stop").json()["answer"]["status"] == "stopped"
    groups.remove_member("finance", BOB)
    withheld = _open(bob, conversation)["messages"][-1]
    assert (withheld["text"], withheld["answer"], withheld["html"]) == ("", None, None)


def test_all_answers_of_a_conversation_are_stopped_whichever_is_shown(
    bob: TestClient, ann: TestClient, writer: Writer
) -> None:
    writer.may_write.clear()
    conversation, first = _begin(bob)
    other, elsewhere = _begin(bob)
    again = bob.post(f"{BASE}/{conversation}/messages/{first}/regenerate").json()["answer"]["id"]
    assert ann.post(f"{BASE}/{conversation}/stop").status_code == 404
    assert bob.post(f"{BASE}/{conversation}/stop").status_code == 204
    for message in (first, again):
        assert _follow(bob, conversation, message)[-1].name == "stopped"
    assert _open(bob, other)["messages"][-1]["status"] == "running"
    writer.may_write.set()
    assert _follow(bob, other, elsewhere)[-1].name == "done"
    assert bob.post(f"{BASE}/{other}/stop").status_code == 204
    assert _open(bob, other)["messages"][-1]["status"] == "finished"


def _wait_until_written(container: Container, conversation: str, message: int, text: str) -> None:
    """Until the events hold this text: they are read as another server process reads them."""
    owner = ConversationOwner(people.get_by_email(container.database, BOB).id)
    end = time.monotonic() + SOON
    while True:
        found = turns.follow(container.database, owner, conversation, message, 0)
        if found and any(text in payload for payload in found.payloads):
            return
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_history_is_what_stands_on_the_branch(
    bob: TestClient, server: ScriptedModel, writer: Writer
) -> None:
    del writer
    conversation, message = _answered(bob)
    path = f"{BASE}/{conversation}/messages"
    other = bob.post(path, json={"question": "Another first?", "parent_id": None}).json()
    _follow(bob, conversation, other["answer"]["id"])
    server.requests.clear()
    begun = bob.post(path, json={"question": "And a junior?", "parent_id": message}).json()
    assert _follow(bob, conversation, begun["answer"]["id"])[-1].name == "done"
    last = server.requests[-1]
    assert last.questions == [QUESTION, "And a junior?"]
    answers = [one["content"] for one in last.messages if one["role"] == "assistant"]
    assert answers == ["A senior engineer is in band five. The band was raised."]
    assert "Another first?" not in last.text
    opened = _open(bob, conversation, leaf=message)
    assert [one["id"] for one in opened["messages"]][-1] == begun["answer"]["id"]
    assert opened["messages"][0]["siblings"] == [
        opened["messages"][0]["id"],
        other["question"]["id"],
    ]
    assert opened["newer"] == []
    made = (other["question"], other["answer"], begun["question"], begun["answer"])
    newer = _open(bob, conversation, leaf=message, known=message)["newer"]
    assert newer == [{"id": one["id"], "parent_id": one["parent_id"]} for one in made]
    assert _open(bob, conversation, known=begun["answer"]["id"])["newer"] == []
    assert _open(bob, conversation, limit=3)["earlier"] == message
    earlier = _open(bob, conversation, before=message)
    assert [one["text"] for one in earlier["messages"]] == [QUESTION]
    assert earlier["earlier"] is None


def test_a_change_of_which_a_part_is_refused_changes_nothing(bob: TestClient) -> None:
    conversation, _ = _answered(bob)
    body = {"title": "Sea\u202e leave", "archived": True, "assistant_id": "nobody"}
    url = f"/api/conversations/{conversation}"
    assert bob.patch(url, json=body).status_code == 404
    assert bob.patch(url, json={"title": "Leave", "leaf_id": 10**9}).status_code == 404
    opened = _open(bob, conversation)["conversation"]
    assert (opened["title"], opened["archived"]) == (QUESTION, False)
    assert bob.patch(url, json={"title": "Sea\u202e leave"}).json()["title"] == "Sea leave"


def test_an_answer_is_given_again(bob: TestClient, writer: Writer) -> None:
    del writer
    conversation, message = _answered(bob)
    path = f"{BASE}/{conversation}/messages/{message}"
    again = bob.post(f"{path}/regenerate")
    assert again.status_code == 202
    answer = again.json()["answer"]
    assert answer["siblings"] == [message, answer["id"]]
    assert _follow(bob, conversation, answer["id"])[-1].name == "done"
    assert _open(bob, conversation)["messages"][-1]["id"] == answer["id"]
    changed = bob.patch(f"{BASE}/{conversation}", json={"leaf_id": message})
    assert changed.status_code == 200
    assert _open(bob, conversation)["messages"][-1]["id"] == message


def test_a_document_that_is_withdrawn_while_it_is_used_ends_the_answer(
    bob: TestClient, groups: GroupService, writer: Writer
) -> None:
    writer.may_write.clear()
    conversation, message = _begin(bob)
    assert writer.held.wait(SOON)
    groups.remove_member("finance", BOB)
    writer.may_write.set()
    streamed = bob.get(f"{BASE}/{conversation}/messages/{message}/events").text
    *_, last = streamed.strip().split("\n\n")
    assert last.startswith("event: error\n")
    assert '"status":403' in last
    assert "five" not in streamed
    _assert_withheld(_wait_for_status(bob, conversation, "failed"))
    groups.add_member("finance", BOB)
    answer = _open(bob, conversation)["messages"][-1]
    assert (answer["problem"]["status"], answer["withheld"]) == (403, False)


def _assert_withheld(message: Any) -> None:
    assert message["withheld"]
    assert message["notice"] == WITHHELD
    assert message["text"] == ""
    assert (message["answer"], message["html"], message["problem"]) == (None, None, None)
    assert "five" not in str(message)
    assert "finance" not in str(message)


def test_a_person_who_is_disabled_ends_the_answer(
    app: Api, modelled: Container, writer: Writer
) -> None:
    person = people.get_by_email(modelled.database, GONE)
    writer.may_write.clear()
    gone = _client_of(app, modelled, person)
    conversation, message = _begin(gone)
    assert writer.held.wait(SOON)
    service = PeopleService(modelled.database)
    service.disable(GONE)
    writer.may_write.set()
    end = time.monotonic() + SOON
    while app.state.app_state.turns.runs(message):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert gone.get(f"{BASE}/{conversation}").status_code == 401
    service.enable(GONE)
    again = _client_of(app, modelled, person)
    answer = _open(again, conversation)["messages"][-1]
    assert (answer["status"], answer["problem"]["status"]) == ("failed", 401)


def test_what_may_not_be_read_any_more_is_shown_nowhere(
    bob: TestClient, server: ScriptedModel, groups: GroupService, writer: Writer
) -> None:
    conversation, message = _answered(bob)
    groups.remove_member("finance", BOB)
    opened = _open(bob, conversation)
    assert opened["messages"][0]["text"] == QUESTION
    _assert_withheld(opened["messages"][-1])
    streamed = bob.get(f"{BASE}/{conversation}/messages/{message}/events").text
    assert streamed.startswith("event: error\n")
    assert "id:" not in streamed
    assert "five" not in streamed
    assert WITHHELD in streamed
    server.requests.clear()
    writer.answer = Say("I cannot say.")
    path = f"{BASE}/{conversation}/messages"
    begun = bob.post(path, json={"question": "Are you sure?", "parent_id": message}).json()
    assert _follow(bob, conversation, begun["answer"]["id"])[-1].name == "done"
    told = "".join(request.text for request in server.requests)
    assert QUESTION in told
    assert "five" not in told
    groups.add_member("finance", BOB)
    assert "band five" in _open(bob, conversation)["messages"][1]["text"]


def test_an_answer_rests_on_those_before_it(
    bob: TestClient, groups: GroupService, writer: Writer
) -> None:
    """The model was told of them: what it says next may repeat them, though it searches for nothing."""
    conversation, message = _answered(bob)
    writer_of_nothing = Say("As I said: band five.")
    _play(writer, writer_of_nothing)
    path = f"{BASE}/{conversation}/messages"
    begun = bob.post(path, json={"question": "Say it again?", "parent_id": message}).json()
    assert _follow(bob, conversation, begun["answer"]["id"])[-1].name == "done"
    groups.remove_member("finance", BOB)
    _assert_withheld(_open(bob, conversation)["messages"][-1])


def _play(writer: Writer, reply: Reply) -> None:
    """Answer without a search."""
    writer.without_search = reply


def test_others_cannot_tell_a_conversation_from_one_that_never_was(
    app: Api, ann: TestClient, bob: TestClient, writer: Writer
) -> None:
    """Generated from the router: a route that is added is asked here as well."""
    del writer
    conversation, message = _answered(bob)
    asked = 0
    for method, path in _routes_of_one(app):
        answers = [
            ann.request(method, _fill(path, identity, message), json=_body(method, path, message))
            for identity in (conversation, "never-was-one")
        ]
        assert [one.status_code for one in answers] == [404, 404], (method, path)
        assert answers[0].text == answers[1].text, (method, path)
        asked += 1
    assert asked == 16
    assert ann.get(BASE).json()["conversations"] == []
    assert _open(bob, conversation)["messages"][-1]["status"] == "finished"


def _body(method: str, path: str, message: int) -> dict[str, object] | None:
    match method:
        case "POST" if path.endswith("/share"):
            return {"message_id": message}
        case "POST":
            return {"question": "?", "parent_id": message}
        case "PATCH":
            return {"leaf_id": message}
        case "PUT" if path.endswith("/project"):
            return {"project_id": None}
        case "PUT":
            return {"rating": "good"}
        case _:
            return None


def _routes_of_one(app: Api) -> Iterator[tuple[str, str]]:
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        path = getattr(route, "path", "")
        if path.startswith(f"{BASE}/{{"):
            for method in getattr(route, "methods", ()):
                yield method, path


def _fill(path: str, conversation: str, message: int) -> str:
    return path.format(conversation_id=conversation, message_id=message)


def test_a_service_token_has_no_conversations(app: Api, modelled: Container) -> None:
    service = _client_of(app, modelled, None)
    paths = [(method, _fill(path, "x", 1)) for method, path in _routes_of_one(app)]
    for method, path in [("GET", BASE), ("POST", BASE), *paths]:
        body = {"question": "?", "parent_id": None} if path != BASE else {"question": "?"}
        answer = service.request(method, path, json=body if method == "POST" else None)
        assert answer.status_code == 403, (method, path)
        assert "Conversations belong to people" in answer.text


@pytest.mark.parametrize(
    "question",
    ["", "  ", "\u200b", "\u2060 \ufeff\U000e0020", "x" * 40_001, None, 7],
    ids=["none", "blank", "zero width", "invisible", "long", "null", "number"],
)
def test_a_question_that_is_none_is_refused(bob: TestClient, question: object) -> None:
    refused = bob.post(BASE, json={"question": question})
    assert refused.status_code == 422
    if isinstance(question, str) and len(question) < 9:
        assert "write a question, with visible characters" in refused.text


@pytest.fixture
def naming(server: ScriptedModel) -> Iterator[ScriptedModel]:
    server.title = '"Salary bands\u200b of  engineers."'
    yield server
    server.title = ""


def _wait_for_title(client: TestClient, conversation: str) -> Any:
    end = time.monotonic() + SOON
    while (found := _open(client, conversation)["conversation"])["title_by"] == "words":
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def test_the_model_names_a_conversation_after_its_first_answer(
    bob: TestClient, writer: Writer, naming: ScriptedModel
) -> None:
    del writer
    conversation, message = _answered(bob)
    named = _wait_for_title(bob, conversation)
    assert (named["title"], named["title_by"]) == ("Salary bands of engineers", "model")
    listed = bob.get(BASE, params={"query": "bands of engineers"}).json()["conversations"]
    assert conversation in [one["id"] for one in listed]
    # Once: neither the next answer nor another one to the same question names it again.
    naming.title = "Something else"
    again = bob.post(f"{BASE}/{conversation}/messages/{message}/regenerate").json()["answer"]["id"]
    assert _follow(bob, conversation, again)[-1].name == "done"
    time.sleep(0.3)
    assert _open(bob, conversation)["conversation"]["title"] == "Salary bands of engineers"


def test_the_title_that_a_person_gave_stays(
    bob: TestClient, writer: Writer, naming: ScriptedModel
) -> None:
    del naming
    writer.may_write.clear()
    conversation, message = _begin(bob)
    renamed = bob.patch(f"{BASE}/{conversation}", json={"title": "Mine"}).json()
    assert renamed["title_by"] == "person"
    writer.may_write.set()
    assert _follow(bob, conversation, message)[-1].name == "done"
    time.sleep(0.3)
    assert _open(bob, conversation)["conversation"]["title"] == "Mine"


def test_a_summary_is_shown_as_long_as_its_sources_may_be_read(
    bob: TestClient, modelled: Container, groups: GroupService, writer: Writer
) -> None:
    del writer
    conversation, message = _answered(bob)
    summaries.keep(modelled.database, Summary(message, "They spoke of band five.", (PAY,)))
    assert _open(bob, conversation)["messages"][-1]["summary"] == "They spoke of band five."
    groups.remove_member("finance", BOB)
    assert _open(bob, conversation)["messages"][-1]["summary"] is None
    groups.add_member("finance", BOB)
    assert bob.delete(f"{BASE}/{conversation}").status_code == 204
    assert summaries.list_of(modelled.database, [message]) == []


@pytest.mark.parametrize("title", [" ", "\u200b\u200d", "\u3164"])
def test_a_title_that_shows_nothing_is_refused(bob: TestClient, writer: Writer, title: str) -> None:
    del writer
    conversation, _ = _answered(bob)
    refused = bob.patch(f"{BASE}/{conversation}", json={"title": title})
    assert refused.status_code == 422
    assert "write a title, with visible characters" in refused.text


def test_what_does_not_belong_to_the_conversation_is_refused(
    bob: TestClient, writer: Writer
) -> None:
    del writer
    conversation, message = _answered(bob)
    other, other_message = _answered(bob)
    path = f"{BASE}/{conversation}"

    def ask(parent: object) -> int:
        asked = {"question": "?", "parent_id": parent}
        return bob.post(f"{path}/messages", json=asked).status_code

    assert ask(other_message) == ask(2**31 - 1) == 404
    assert ask(_open(bob, conversation)["messages"][0]["id"]) == ask(2**31) == ask(0) == 422
    assert bob.post(f"{path}/messages", json={"question": "no parent"}).status_code == 422
    for query in ({"leaf": other_message}, {"before": other_message}):
        assert bob.get(path, params=query).status_code == 404
    assert bob.patch(path, json={"leaf_id": other_message}).status_code == 404
    assert bob.patch(path, json={"title": " "}).status_code == 422
    assert bob.patch(path, json={"owner": 1}).status_code == 422
    for action in ("stop", "regenerate"):
        wrong = f"{path}/messages/{other_message}/{action}"
        assert bob.post(wrong).status_code == 404
    assert bob.get(f"{path}/messages/{other_message}/events").status_code == 404
    question = _open(bob, conversation)["messages"][0]["id"]
    assert bob.post(f"{path}/messages/{question}/stop").status_code == 422
    assert bob.get(f"{path}/messages/{question}/events").status_code == 404
    assert bob.get(BASE, params={"before": "x"}).status_code == 422
    assert bob.get(f"{BASE}/{other}").status_code == 200
    del message


def test_a_question_behind_a_running_answer_waits(bob: TestClient, writer: Writer) -> None:
    writer.may_write.clear()
    conversation, message = _begin(bob)
    path = f"{BASE}/{conversation}/messages"
    behind = bob.post(path, json={"question": "?", "parent_id": message})
    assert (behind.status_code, "still being written" in behind.text) == (409, True)
    for _ in range(2):
        assert bob.post(path, json={"question": "?", "parent_id": None}).status_code == 202
    assert bob.post(path, json={"question": "?", "parent_id": None}).status_code == 409
    assert bob.get(BASE).json()["conversations"][0]["running"]
    assert bob.delete(f"{BASE}/{conversation}").status_code == 204
    assert bob.get(f"{BASE}/{conversation}").status_code == 404


def test_a_follower_for_whom_there_is_no_room_is_told_when_to_come_again(
    app: Api, bob: TestClient, writer: Writer
) -> None:
    writer.may_write.clear()
    conversation, message = _begin(bob)
    state, loop = app.state.app_state, asyncio.new_event_loop()
    pool = FairPool("followed answers", PoolLimits(at_once=1, waiting=0), PoolRecord())
    taken = pool.slot("somebody", CancelToken())
    loop.run_until_complete(taken.__aenter__())
    app.state.app_state = replace(state, pools=replace(state.pools, followed_answers=pool))
    try:
        refused = bob.get(f"{BASE}/{conversation}/messages/{message}/events")
    finally:
        app.state.app_state = state
    assert refused.status_code == 503
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json()["detail"] == "Quarry is busy: too many followed answers are under way."
    # The answer goes on, and is followed as soon as somebody has left.
    loop.run_until_complete(taken.__aexit__(None, None, None))
    loop.close()
    writer.may_write.set()
    assert _follow(bob, conversation, message)[-1].name == "done"


def test_conversations_are_named_archived_and_found(bob: TestClient, writer: Writer) -> None:
    del writer
    conversation, _ = _answered(bob)
    path = f"{BASE}/{conversation}"
    renamed = bob.patch(path, json={"title": " Bands  of\nÉlodie ", "archived": True}).json()
    assert (renamed["title"], renamed["archived"]) == ("Bands of Élodie", True)

    def found(**query: object) -> list[str]:
        answer = bob.get(BASE, params=query)  # type: ignore[arg-type]
        return [one["id"] for one in answer.json()["conversations"]]

    assert found(archived=True, query="elodie SALARY") == [conversation]
    assert conversation not in found(query="elodie")
    assert not bob.patch(path, json={"archived": False}).json()["archived"]
    assert conversation in found(query="elodie")
    page = bob.get(BASE, params={"limit": 1}).json()
    assert page["next"]
    following = bob.get(BASE, params={"limit": 1, "before": page["next"]}).json()
    assert following["conversations"][0]["id"] != page["conversations"][0]["id"]


def test_a_search_of_the_list_says_that_the_archive_has_matches_too(
    bob: TestClient, writer: Writer, groups: GroupService
) -> None:
    """Not by an answer that the asker may not read any more."""
    writer.answer = Say("The astrolabe is in band five [1].")
    archived, _ = _answered(bob, "Which sextant?")
    bob.patch(f"{BASE}/{archived}", json={"archived": True})

    def is_said(**query: object) -> bool:
        said = bob.get(BASE, params=query).json()["has_archived_matches"]  # type: ignore[arg-type]
        assert isinstance(said, bool)
        return said

    assert is_said(query="sextant")
    assert is_said(query="astrolabe SEXTANT")
    assert not is_said(query="")
    assert not is_said(query="sextant zebra")
    assert not is_said(query="sextant", archived=True)
    groups.remove_member("finance", BOB)
    assert not is_said(query="astrolabe")
    groups.add_member("finance", BOB)
    assert is_said(query="astrolabe")
    bob.delete(f"{BASE}/{archived}")
    assert not is_said(query="sextant")


def test_an_answer_is_found_while_its_sources_may_be_read(
    ann: TestClient, bob: TestClient, writer: Writer, groups: GroupService
) -> None:
    writer.answer = Say("The torquetum is in band five [1].")
    conversation, _ = _answered(bob, "Which band?")

    def found(client: TestClient, query: str) -> Any:
        return client.get(BASE, params={"query": query}).json()

    (hit,) = found(bob, "TORQUETUM which")["conversations"]
    assert (hit["id"], hit["title"]) == (conversation, "Which band?")
    nothing: dict[str, object] = {"conversations": [], "next": None, "has_archived_matches": False}
    assert found(bob, "torquetu_") == found(bob, "%torquetum") == nothing
    groups.remove_member("finance", BOB)
    assert found(bob, "torquetum") == found(bob, "torquetum which") == nothing
    groups.add_member("finance", BOB)
    assert found(bob, "torquetum")["conversations"] == [hit]
    groups.add_member("finance", ANN)
    assert found(ann, "torquetum") == nothing
    groups.remove_member("finance", ANN)


def test_the_owner_of_a_machine_without_accounts_has_conversations(container: Container) -> None:
    """Without a language model, too."""
    with client_of(container) as owner:
        conversation, message = _begin(owner, "How long is parental leave?")
        assert _follow(owner, conversation, message)[-1].name == "done"
        answer = _open(owner, conversation)["messages"][-1]
    assert "26 weeks" in answer["text"]
    assert answer["answer"]["model"] is None


def test_a_server_that_stops_keeps_what_was_written(
    app: Api, bob: TestClient, modelled: Container, writer: Writer
) -> None:
    writer.answer = Say(["A senior ", "engineer ", "earns ", "more"], manner=Manner(stall_after=4))
    bobs = people.get_by_email(modelled.database, BOB)
    with _serve(modelled) as stopping:
        conversation, message = _begin(_client_of(stopping, modelled, bobs))
        _wait_until_written(modelled, conversation, message, "earns")
        assert not app.state.app_state.turns.runs(message)
    answer = _open(bob, conversation)["messages"][-1]
    assert answer["status"] == "interrupted"
    assert answer["text"].startswith("A senior engineer earns")
    assert _follow(bob, conversation, message)[-1].name == "interrupted"
