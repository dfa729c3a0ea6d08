"""Sharing, export and feedback over HTTP: each answer only for those who may read now all that it rests on."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.api.account_authentication import AccountCookies, AccountPresence
from backend.api.app import Api, create_app
from backend.cli.server import Owner, make_authenticator
from backend.container import Container
from backend.conversations import sharing
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.markdown_export import EARLIER
from backend.conversations.turn_events import STOPPED
from backend.conversations.unfinished_answer import make_unfinished_answer
from backend.store import audit
from backend.store.accounts import people
from backend.store.audit import AuditFilter
from backend.store.chat import conversations, messages
from backend.store.chat.turns import Ending
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.conversations import begin, finish, make_answer, store, text_portion
from tests.support.databases import Databases
from tests.unit.backend.api.conftest import (
    ADDRESS,
    SOURCE,
    client_of,
    connected,
    make_container,
)

ANN, BOB, CID, DEE, EVE = (f"{name}@example.com" for name in ("ann", "bob", "cid", "dee", "eve"))
QUESTION = "In which salary band is a senior engineer?"
PAY, LEAVE = f"{SOURCE}:finance/pay.md", f"{SOURCE}:leave.md"
# How long the answer took, in JSON and on pages: the digits alone may stand in any time.
SECONDS = ('"seconds":1.5', "1.5 s")
SECRETS = ("band five", "finance", "Title of", "Quote of", *SECONDS, "supported", "five of them")
SHARED = "/api/shared"
_DAY = timedelta(days=1)
ADMIN = "/api/admin/feedback"
FILES = {"use": "whole", "sentence": "", "names": ["payslip.pdf"], "unseen": [], "unread": []}
LOSS = {"step": "history", "reason": "The finance of the model is at an end."}
MISSING = "Nothing is shared under this link, or sharing has ended."


@dataclass(frozen=True)
class World:
    """Bob and Dee are in the group that reads the salary bands; Ann, an admin, and Cid are not."""

    container: Container
    clients: dict[str, TestClient]

    def owner(self, email: str) -> ConversationOwner:
        return ConversationOwner(people.get_by_email(self.container.database, email).id)

    @property
    def groups(self) -> GroupService:
        return GroupService(self.container.database)

    def answered(self, email: str = BOB, question: str = QUESTION) -> tuple[str, int]:
        """A conversation of one question and an answer on salaries."""
        database = self.container.database
        begun = begin(database, question, self.owner(email))
        text = "It is band five [[1]](https://wiki.example.com/1)."
        record = {
            "variants": [{"name": "original", "text": "five of them", "weight": 1}],
            "steps": {"queries": 0.1},
        }
        answer = make_answer(text, PAY, record=record)
        finish(database, begun.answer.id, text, (PAY,), answer, (LOSS,))
        return begun.question.conversation_id, begun.answer.id

    def shared(self, email: str = BOB) -> tuple[str, str]:
        """The conversation, and the link."""
        conversation, message = self.answered(email)
        answer = self.clients[email].post(_share(conversation), json={"message_id": message})
        assert answer.status_code == 200, answer.text
        return conversation, answer.json()["id"]


def _share(conversation: str) -> str:
    return f"/api/conversations/{conversation}/share"


def _feedback(conversation: str, message: int) -> str:
    return f"/api/conversations/{conversation}/messages/{message}/feedback"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[World]:
    home = tmp_path_factory.mktemp("sharing")
    if request.param == "sqlite":
        yield from make_worlds(make_container(home), folder)
        return
    databases: Databases = request.getfixturevalue("postgresql")
    with databases.new() as url:
        container = make_container(home, database_url=url)
        with closing(container.database):
            yield from make_worlds(container, folder)


def make_worlds(container: Container, folder: Path) -> Iterator[World]:
    connected(container, folder)
    add_person(container.database, ANN, Role.ADMIN)
    groups = GroupService(container.database)
    groups.create("finance")
    for email in (BOB, CID, DEE, EVE):
        add_person(container.database, email)
    for email in (BOB, DEE):
        groups.add_member("finance", email)
    with _serve(container) as app:
        clients = {
            email: _client_of(app, container, email, TokenScope.ASK)
            for email in (ANN, BOB, CID, DEE, EVE)
        }
        clients["admin"] = _client_of(app, container, ANN, TokenScope.ADMIN)
        yield World(container, clients)


@contextmanager
def _serve(container: Container) -> Iterator[Api]:
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


def _client_of(app: Api, container: Container, email: str, scope: TokenScope) -> TestClient:
    person = people.get_by_email(container.database, email)
    service = ApiTokenService(container.database, owner=person)
    given = service.create(f"{scope}-{email.partition('@')[0]}", [scope], _DAY)
    return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {given}"})


def _opened(client: TestClient, link: str) -> Any:
    answer = client.get(f"{SHARED}/{link}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def _assert_nothing(text: str, but: str = "") -> None:
    shown = text.replace(QUESTION, "").replace(but, "")
    assert [secret for secret in SECRETS if secret in shown] == []


def test_who_may_read_the_sources_reads_what_is_shared(world: World) -> None:
    _, link = world.shared()
    opened = _opened(world.clients[DEE], link)
    question, answer = opened["messages"]
    assert (opened["title"], question["text"]) == (QUESTION, QUESTION)
    assert answer["answer"]["citations"][0]["document_id"] == PAY
    assert answer["html"]
    assert not answer["withheld"]
    assert set(question) == {"role", "text", "answer", "html", "withheld", "notice", "losses"}
    assert (question["losses"], answer["losses"]) == ([], [LOSS])


def test_who_may_not_is_shown_the_question_alone(world: World) -> None:
    _, link = world.shared()
    found = world.clients[CID].get(f"{SHARED}/{link}")
    assert found.json()["messages"][1] == {
        "role": "assistant",
        "text": "",
        "answer": None,
        "html": None,
        "withheld": True,
        "notice": WITHHELD,
        "losses": [],
    }
    _assert_nothing(found.text)


def test_what_counts_is_what_may_be_read_now(world: World) -> None:
    _, link = world.shared()
    dee = world.clients[DEE]
    world.groups.remove_member("finance", DEE)
    assert _opened(dee, link)["messages"][1]["withheld"]
    world.groups.add_member("finance", DEE)
    assert not _opened(dee, link)["messages"][1]["withheld"]


def test_a_link_that_leads_nowhere_says_no_more_than_one_that_never_did(world: World) -> None:
    taken, link = world.shared()
    deleted, gone = world.shared()
    _, disabled = world.shared(EVE)
    assert world.clients[BOB].delete(_share(taken)).status_code == 204
    assert world.clients[BOB].delete(f"/api/conversations/{deleted}").status_code == 204
    service = PeopleService(world.container.database)
    service.disable(EVE)
    answers = {
        (method, suffix): [
            world.clients[CID].request(method, f"{SHARED}/{one}{suffix}")
            for one in (link, gone, disabled, "never-was-one", "x\0y".replace("\0", "%00"))
        ]
        for method, suffix in (("GET", ""), ("GET", "/export"), ("POST", "/copy"))
    }
    service.enable(EVE)
    for where, found in answers.items():
        assert {one.status_code for one in found} == {404}, where
        assert {one.text for one in found} == {found[0].text}, where
        assert MISSING in found[0].text
    assert world.clients[CID].get(f"{SHARED}/{disabled}").status_code == 200


def test_a_link_that_was_taken_back_never_comes_again(world: World) -> None:
    conversation, link = world.shared()
    bob = world.clients[BOB]
    state = bob.get(_share(conversation)).json()["share"]
    assert (state["id"], state["path"]) == (link, f"/shared/{link}")
    for _ in range(2):
        assert bob.delete(_share(conversation)).status_code == 204
    assert bob.get(_share(conversation)).json() == {"share": None}
    again = bob.post(_share(conversation), json={"message_id": state["message_id"]}).json()
    assert again["id"] != link
    assert len(again["id"]) == 22
    assert bob.get(f"{SHARED}/{link}").status_code == 404


def test_what_a_stopped_answer_cites_is_shared_and_judged_as_that_of_any_other(
    world: World,
) -> None:
    database, text = world.container.database, "It is band five [[1]](https://wiki.example.com/1)."
    begun = begin(database, QUESTION, world.owner(BOB))
    cited = {"number": 1, "document_id": PAY, "title": "Pay", "link": "https://wiki.example.com/1"}
    passage = {"document_id": PAY, "content": "Quote of the bands.", "section": 1, "span": [0, 19]}
    passage |= {"source": "Your files", "updated_at": None, "heading_path": []}
    ending = Ending(
        message_id=begun.answer.id,
        status="stopped",
        text=text,
        answer=make_unfinished_answer(text, [cited], [{"results": [passage]}]),
    )
    portion = text_portion(begun.answer.id, 1, text, documents=(PAY,))
    store(database, begun.answer.id, portion, ending, datetime.now(UTC))
    conversation, bob = begun.question.conversation_id, world.clients[BOB]
    link = bob.post(_share(conversation), json={"message_id": begun.answer.id}).json()["id"]
    for client in (world.clients[DEE], world.clients[CID]):
        opened = _opened(client, link)["messages"][-1]
        if client is world.clients[CID]:
            assert opened["withheld"]
            _assert_nothing(json.dumps(opened))
        else:
            assert opened["notice"] == STOPPED
            assert opened["answer"]["references"][0]["document_id"] == PAY
            assert opened["answer"]["citations"][0]["quote"] == "Quote of the bands."
            assert opened["answer"]["documents"][0]["source"] == ""
    own = bob.get(f"/api/conversations/{conversation}").json()["messages"][-1]
    assert own["answer"]["documents"][0]["source"] == "Your files"
    said = {"rating": "wrong_source", "comment": "", "source": 1}
    assert bob.put(_feedback(conversation, begun.answer.id), json=said).status_code == 204
    world.groups.add_member("finance", ANN)
    seen = _newest(world)
    world.groups.remove_member("finance", ANN)
    assert (seen["source"], seen["verdicts"], seen["notice"]) == (1, {"unchecked": 1}, STOPPED)


def test_that_earlier_messages_are_not_returned_is_said(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, _ = world.shared()
    first = conversations.get(world.container.database, world.owner(BOB), conversation).leaf_id
    later = _ask_on(world, conversation, first, "And a director?")
    bob = world.clients[BOB]
    link = bob.post(_share(conversation), json={"message_id": later}).json()["id"]
    export = f"{SHARED}/{link}/export"
    assert not _opened(bob, link)["has_earlier"]
    assert EARLIER not in bob.get(export).text
    monkeypatch.setattr(sharing, "MOST_SHOWN", 2)
    opened = _opened(bob, link)
    assert opened["has_earlier"]
    assert [one["text"] for one in opened["messages"]] == ["And a director?", "Band nine."]
    assert f"*{EARLIER}*\n" in bob.get(export).text


def test_the_export_of_ones_own_conversation_is_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each answer in it what may be read, however many messages are read at once."""
    conversation, _ = world.shared()
    bob, path = world.clients[BOB], f"/api/conversations/{conversation}/export"
    last = conversations.get(world.container.database, world.owner(BOB), conversation).leaf_id
    for text in ("And a director?", "And a clerk?"):
        last = _ask_on(world, conversation, last, text)
    whole = bob.get(path).text
    for most in (1, 2, 3, 5):
        monkeypatch.setattr(sharing, "MOST_SHOWN", most)
        assert bob.get(path).text == whole
    assert EARLIER not in whole
    assert whole.count("## Question") == whole.count("## Answer") == 3
    world.groups.remove_member("finance", BOB)
    _assert_nothing(bob.get(path).text)
    world.groups.add_member("finance", BOB)


def test_what_is_said_later_is_shared_only_anew(world: World) -> None:
    conversation, link = world.shared()
    database, owner = world.container.database, world.owner(BOB)
    first = conversations.get(database, owner, conversation).leaf_id
    later = _ask_on(world, conversation, first, "And a director?")
    assert len(_opened(world.clients[DEE], link)["messages"]) == 2
    bob = world.clients[BOB]
    assert bob.post(_share(conversation), json={"message_id": later}).json()["id"] == link
    texts = [one["text"] for one in _opened(world.clients[DEE], link)["messages"]]
    assert texts[2:] == ["And a director?", "Band nine."]


def _ask_on(world: World, conversation: str, parent: int | None, question: str) -> int:
    from_bob = world.clients[BOB]
    asked = from_bob.post(
        f"/api/conversations/{conversation}/messages",
        json={"question": question, "parent_id": parent},
    )
    assert asked.status_code == 202, asked.text
    message: int = asked.json()["answer"]["id"]
    _settle(from_bob, conversation, message)
    with world.container.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE messages SET text = 'Band nine.', answer = NULL, status = 'stopped'"
            f" WHERE id = {message}"
        )
    return message


def _settle(client: TestClient, conversation: str, message: int) -> None:
    answer = client.get(f"/api/conversations/{conversation}/messages/{message}/events")
    assert answer.status_code in {200, 204}


def test_another_first_question_is_not_in_the_title(world: World) -> None:
    conversation, _ = world.answered(question="Is my colleague paid more?")
    other = _ask_on(world, conversation, None, "How is pay decided?")
    bob = world.clients[BOB]
    link = bob.post(_share(conversation), json={"message_id": other}).json()["id"]
    assert _opened(world.clients[CID], link)["title"] == "How is pay decided?"
    bob.patch(f"/api/conversations/{conversation}", json={"title": "Pay"})
    found = world.clients[CID].get(f"{SHARED}/{link}")
    assert found.json()["title"] == "Pay"
    assert "colleague" not in found.text


def test_a_title_that_a_model_made_of_the_question_is_its_askers_alone(
    world: World,
) -> None:
    conversation, link = world.shared()
    with world.container.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE conversations SET title = 'Band five of engineers', title_by = 'model'"
            f" WHERE id = '{conversation}'"
        )
    assert _opened(world.clients[CID], link)["title"] == QUESTION
    export = f"/api/conversations/{conversation}/export"
    assert world.clients[BOB].get(export).text.startswith("# Band five of engineers\n")
    world.groups.remove_member("finance", BOB)
    withheld = world.clients[BOB].get(export).text
    world.groups.add_member("finance", BOB)
    assert withheld.startswith("# Band five of engineers\n")
    _assert_nothing(withheld.replace("Band five of engineers", ""))


def test_only_an_answer_that_has_ended_is_shared(world: World) -> None:
    begun = begin(world.container.database, QUESTION, world.owner(BOB))
    path = _share(begun.question.conversation_id)
    bob = world.clients[BOB]

    def share(message: object) -> int:
        return bob.post(path, json={"message_id": message}).status_code

    assert share(begun.answer.id) == 409
    assert share(begun.question.id) == share(None) == share(0) == 422
    _, other = world.answered(CID)
    assert share(other) == share(2**31 - 1) == 404
    finish(world.container.database, begun.answer.id)
    assert share(begun.answer.id) == 200


def test_asking_on_begins_with_what_may_be_read(world: World) -> None:
    conversation, link = world.shared()
    database = world.container.database
    copied = world.clients[DEE].post(f"{SHARED}/{link}/copy")
    assert copied.status_code == 201
    own = world.clients[DEE].get(f"/api/conversations/{copied.json()['id']}").json()
    assert [one["text"][:15] for one in own["messages"]] == [QUESTION[:15], "It is band five"]
    assert own["messages"][1]["answer"]["citations"][0]["document_id"] == PAY
    world.groups.remove_member("finance", DEE)
    again = world.clients[DEE].get(f"/api/conversations/{copied.json()['id']}")
    assert again.json()["messages"][1]["withheld"]
    world.groups.add_member("finance", DEE)
    refused = world.clients[CID].post(f"{SHARED}/{link}/copy")
    assert refused.status_code == 409
    assert "You may read none of its answers" in refused.text
    found = conversations.list_page(
        database, world.owner(CID), state="active", words=[], before=None, limit=50
    )
    assert conversation not in [one.id for one in found]


def test_an_export_holds_the_sources_and_is_withheld_as_the_page_is(world: World) -> None:
    conversation, link = world.shared()
    own = world.clients[BOB].get(f"/api/conversations/{conversation}/export")
    shared = world.clients[DEE].get(f"{SHARED}/{link}/export")
    for one in (own, shared):
        assert one.headers["content-type"] == "text/markdown; charset=utf-8"
        assert one.headers["content-disposition"] == 'attachment; filename="conversation.md"'
        assert "It is band five [1]." in one.text
        assert "1. [Title of wiki:finance/pay.md](https://wiki.example.com/1)\n" in one.text
    withheld = world.clients[CID].get(f"{SHARED}/{link}/export").text
    assert withheld == (
        f"# {QUESTION}\n\n## Question\n\n> {QUESTION}  \n\n## Answer\n\n*{WITHHELD}*\n"
    )
    _, elsewhere = world.answered(CID)
    path = f"/api/conversations/{conversation}/export"
    assert world.clients[BOB].get(path, params={"leaf": elsewhere}).status_code == 404


def test_a_shared_conversation_is_changed_by_nobody_else(world: World) -> None:
    conversation, link = world.shared()
    message = messages.list_path(
        world.container.database,
        conversations.get(world.container.database, world.owner(BOB), conversation).leaf_id or 0,
        2,
    )[-1].id
    cid = world.clients[CID]
    path = f"/api/conversations/{conversation}"
    tried = [
        cid.post(f"{path}/messages", json={"question": "?", "parent_id": message}),
        cid.put(_feedback(conversation, message), json={"rating": "good"}),
        cid.post(_share(conversation), json={"message_id": message}),
        cid.delete(_share(conversation)),
        cid.delete(path),
    ]
    assert [one.status_code for one in tried] == [404] * len(tried)
    assert cid.delete(f"{SHARED}/{link}").status_code == 405
    assert _opened(world.clients[DEE], link)


def _give(world: World, email: str = BOB, **said: object) -> tuple[str, int]:
    conversation, message = world.answered(email)
    answer = world.clients[email].put(_feedback(conversation, message), json=said)
    assert answer.status_code == 204, answer.text
    return conversation, message


def _newest(world: World, client: str = "admin", **query: str) -> Any:
    answer = world.clients[client].get(ADMIN, params={"limit": "1", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["feedback"][0]


def test_feedback_is_replaced_and_taken_back(world: World) -> None:
    conversation, message = _give(world, rating="good", comment=" Right. ")
    bob, path = world.clients[BOB], f"/api/conversations/{conversation}/feedback"
    good = {"message_id": message, "rating": "good", "comment": "Right.", "source": None}
    assert bob.get(path).json() == [good]
    wrong = {"rating": "wrong_source", "comment": "", "source": 1}
    assert bob.put(_feedback(conversation, message), json=wrong).status_code == 204
    assert bob.get(path).json() == [{"message_id": message, **wrong}]
    for _ in range(2):
        assert bob.delete(_feedback(conversation, message)).status_code == 204
    assert bob.get(path).json() == []


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"rating": "wrong_source"}, 422),
        ({"rating": "good", "source": 1}, 422),
        ({"rating": "wrong_source", "source": 2}, 422),
        ({"rating": "best"}, 422),
        ({"rating": "bad", "comment": "x" * 2_001}, 422),
        ({"rating": "bad", "comment": "\0"}, 422),
        ({"rating": "bad", "comment": "Ünlauter 👍"}, 204),
    ],
)
def test_what_can_be_said_of_an_answer(world: World, said: dict[str, object], status: int) -> None:
    conversation, message = world.answered()
    given = world.clients[BOB].put(_feedback(conversation, message), json=said)
    assert given.status_code == status, given.text


def test_nothing_is_said_of_an_answer_that_may_not_be_read(world: World) -> None:
    """Which number of a source is refused would say how many there are."""
    conversation, message = _give(world, rating="wrong_source", source=1)
    world.groups.remove_member("finance", BOB)
    bob = world.clients[BOB]
    given = [
        bob.put(_feedback(conversation, message), json={"rating": "wrong_source", "source": number})
        for number in (1, 2)
    ]
    own = bob.get(f"/api/conversations/{conversation}/feedback").json()
    world.groups.add_member("finance", BOB)
    assert [one.status_code for one in given] == [409, 409]
    assert given[0].text == given[1].text
    assert [one["source"] for one in own] == [None]


def test_an_admin_sees_of_the_answer_what_they_may_read(world: World) -> None:
    _give(world, rating="wrong_source", comment="Not ours.", source=1)
    found = world.clients["admin"].get(ADMIN, params={"limit": 1})
    seen = found.json()["feedback"][0]
    # The comment may quote the answer.
    assert (seen["person"], seen["rating"], seen["comment"]) == (BOB, "wrong_source", "")
    assert (seen["question"], seen["notice"]) == (QUESTION, WITHHELD)
    assert (seen["source"], seen["answer"], seen["html"]) == (None, None, None)
    assert (seen["variants"], seen["steps"], seen["verdicts"]) == ([], {}, {})
    _assert_nothing(json.dumps(seen))
    world.groups.add_member("finance", ANN)
    seen = _newest(world)
    world.groups.remove_member("finance", ANN)
    assert (seen["comment"], seen["source"]) == ("Not ours.", 1)
    assert seen["verdicts"] == {"supported": 1}
    assert seen["variants"] == [{"name": "original", "text": "five of them"}]
    assert seen["steps"] == {"queries": 0.1}
    assert "band five" in seen["html"]


def test_feedback_has_pages_and_ratings_and_each_look_is_in_the_audit(world: World) -> None:
    for rating in ("good", "bad", "good"):
        _give(world, rating=rating, comment=rating)
    admin = world.clients["admin"]
    first = admin.get(ADMIN, params={"limit": 2}).json()
    assert [one["rating"] for one in first["feedback"]] == ["good", "bad"]
    then = admin.get(ADMIN, params={"limit": 1, "before": first["next"]}).json()
    assert [one["rating"] for one in then["feedback"]] == ["good"]
    assert _newest(world, rating="bad")["rating"] == "bad"
    entry = audit.list_entries(world.container.database, limit=1)[0]
    assert (entry.action, entry.subject) == ("read_feedback", "feedback:bad")
    assert "ann" in entry.actor
    for email in (BOB, ANN):
        assert world.clients[email].get(ADMIN).status_code == 403, "the scope is for questions"


def test_judged_questions_are_exported_for_who_may_read_the_answers(world: World) -> None:
    _, good = _give(world, rating="good")
    _, wrong = _give(world, rating="wrong_source", source=1)
    _, bad = _give(world, rating="bad")
    path, admin = f"{ADMIN}/export", world.clients["admin"]
    assert f"answer-{good}" not in admin.get(path).text
    world.groups.add_member("finance", ANN)
    lines = [json.loads(line) for line in admin.get(path).text.splitlines()]
    world.groups.remove_member("finance", ANN)
    found = {one["_id"]: one for one in lines}
    assert found[f"answer-{good}"]["text"] == QUESTION
    assert found[f"answer-{good}"]["judgments"] == {PAY: 1}
    # Without its one source nothing is left that answers the question.
    assert f"answer-{wrong}" not in found
    assert f"answer-{bad}" not in found
    which = AuditFilter(action="export_feedback")
    entries = audit.list_entries(world.container.database, which, limit=2)
    assert entries[0].detail["number"] == entries[1].detail["number"] + len(lines)  # type: ignore[operator]


def test_nothing_is_left_of_a_conversation_that_is_deleted(world: World) -> None:
    conversation, message = _give(world, rating="good", comment="To be forgotten")
    bob = world.clients[BOB]
    link = bob.post(_share(conversation), json={"message_id": message}).json()["id"]
    assert bob.delete(f"/api/conversations/{conversation}").status_code == 204
    assert bob.get(f"{SHARED}/{link}").status_code == 404
    assert "To be forgotten" not in world.clients["admin"].get(ADMIN).text


def test_the_owner_of_a_machine_shares_with_nobody_else(container: Container) -> None:
    begun = begin(container.database, "How long is leave?")
    text = "26 weeks [[1]](https://wiki.example.com/1)."
    private = {"passages_reason": "group_budget_used", "files": FILES}
    answer = make_answer(text, LEAVE, **private)
    finish(container.database, begun.answer.id, text, (LEAVE,), answer)
    conversation = begun.question.conversation_id
    with client_of(container) as owner:
        own = owner.get(f"/api/conversations/{conversation}").json()["messages"][1]["answer"]
        assert {name: own[name] for name in private} == private
        shared = owner.post(_share(conversation), json={"message_id": begun.answer.id}).json()
        said = _opened(owner, shared["id"])["messages"][1]
        assert not said["withheld"]
        owner.put(_feedback(conversation, begun.answer.id), json={"rating": "good"})
        seen = owner.get(ADMIN).json()["feedback"][0]
        assert (seen["person"], seen["withheld"]) == (None, False)
        for shown in (said["answer"], seen["answer"]):
            assert (shown["passages_reason"], shown["files"]) == ("without_model", None)
        assert json.loads(owner.get(f"{ADMIN}/export").text)["judgments"] == {LEAVE: 1}
        assert owner.delete(f"/api/conversations/{conversation}").status_code == 204
