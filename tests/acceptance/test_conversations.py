"""Conversations across processes: followed and stopped from another one, and whole after a process was killed."""

import random
import signal
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.databases import Databases
from tests.support.home import Home
from tests.support.scripted_model import Call, Manner, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.server_processes import (
    SERVERS,
    SOON,
    client_of,
    find_accepting,
    wait_for,
    wait_until_reached,
)
from tests.support.serving import Event, Serving, events, serving
from tests.support.soak import scaled

BASE = "/api/conversations"
QUESTION = {"question": "What should a customer do when the scanner shows QX-4031?"}
WORDS = ["Close ", "the ", "cover ", "until ", "it ", "clicks, ", "then ", "scan ", "again. "] * 3
ROUNDS = scaled(1, 10, "faults")
"""Servers that are killed, each in the middle of five answers and more."""
AT_ONCE = 5
MANY = 50
"""Answers that are written side by side when a server is killed."""


def _write(request: Request) -> Reply:
    """A model that searches, then writes for two seconds."""
    if request.has_sources:
        return Say(WORDS, manner=Manner(delay=2 / len(WORDS)))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031"]}))
    return Say("QX-4031")


def _write_and_hang(request: Request) -> Reply:
    found = _write(request)
    if isinstance(found, Say) and len(found.pieces) == len(WORDS):
        return Say(WORDS, manner=Manner(stall_after=5))
    return found


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(_write) as running:
        yield running


def _settings(model: ScriptedModel) -> dict[str, str]:
    return {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The setting of the database that the server keeps its conversations in: that of the home, or one on PostgreSQL."""
    if request.param == "sqlite":
        yield {}
        return
    databases: Databases = request.getfixturevalue("postgresql")
    with databases.new() as url:
        yield {"QUARRY_DATABASE_URL": url}


def _begin(client: httpx.Client) -> tuple[str, int]:
    begun = client.post(BASE, json=QUESTION)
    assert begun.status_code == 202, begun.text
    return begun.json()["conversation"]["id"], begun.json()["answer"]["id"]


def _events_of(
    client: httpx.Client, conversation: str, message: int, after: int
) -> Generator[Event, None, None]:
    path = f"{BASE}/{conversation}/messages/{message}/events"
    with client.stream("GET", path, headers={"Last-Event-ID": str(after)}) as response:
        assert response.status_code == 200
        yield from events(response.iter_lines())


def test_an_answer_of_one_process_is_followed_and_stopped_from_the_other(
    home: Home, model: ScriptedModel, database: dict[str, str]
) -> None:
    with serving(home, "--processes", "2", **_settings(model), **database) as server:
        wait_for(lambda: find_accepting(server) == set(SERVERS))
        with client_of(server, "server 1") as first, client_of(server, "server 2") as second:
            _check_following_and_stopping(model, first, second)


def test_an_answer_of_one_server_is_followed_and_stopped_from_another(
    home: Home, model: ScriptedModel, database: dict[str, str]
) -> None:
    """Two servers that know of each other only by the database and the index that they share."""
    settings = {**_settings(model), **database}
    with serving(home, **settings) as one, serving(home, **settings) as other:
        _check_following_and_stopping(model, one.client, other.client)


def _check_following_and_stopping(
    model: ScriptedModel, first: httpx.Client, second: httpx.Client
) -> None:
    """Begin an answer on one, follow it on the other and leave, stop it there, and read the rest."""
    model.play(_write_and_hang)
    model.hung_up.clear()
    conversation, message = _begin(first)
    seen: list[Event] = []
    streamed = _events_of(second, conversation, message, 0)
    for event in streamed:
        seen.append(event)
        if event.name == "text" and "".join(_texts(seen)).count(" ") >= 2:
            break
    streamed.close()
    opened = first.get(f"{BASE}/{conversation}").json()
    assert opened["messages"][-1]["status"] == "running"
    assert not model.hung_up.is_set()
    with httpx.Client(base_url=second.base_url, timeout=SOON, headers=second.headers) as third:
        assert third.post(f"{BASE}/{conversation}/messages/{message}/stop").status_code == 202
    assert model.hung_up.wait(SOON)
    with httpx.Client(base_url=second.base_url, timeout=SOON, headers=second.headers) as third:
        rest = list(_events_of(third, conversation, message, seen[-1].id))
        assert rest[-1].name == "stopped"
        assert [one.id for one in [*seen, *rest]] == list(range(1, rest[-1].id + 1))
        answer = third.get(f"{BASE}/{conversation}").json()["messages"][-1]
    assert answer["status"] == "stopped"
    assert answer["text"] == "".join(_texts([*seen, *rest]))
    assert answer["text"].startswith("Close the cover")


def _texts(found: list[Event]) -> Iterator[str]:
    yield from (one.data["text"] for one in found if one.name == "text")


@dataclass(frozen=True)
class Posted:
    """What servers have confirmed: answers by their conversation, in the order in which they were asked for."""

    answers: dict[str, list[int]] = field(default_factory=dict)

    def begin(self, client: httpx.Client) -> None:
        conversation, message = _begin(client)
        self.answers[conversation] = [message]

    def ask_again(self, client: httpx.Client, conversation: str) -> None:
        body = {**QUESTION, "parent_id": self.answers[conversation][-1]}
        begun = client.post(f"{BASE}/{conversation}/messages", json=body)
        assert begun.status_code == 202, begun.text
        self.answers[conversation].append(begun.json()["answer"]["id"])


@pytest.mark.deep("faults")
def test_a_killed_server_loses_and_doubles_nothing(home: Home, model: ScriptedModel) -> None:
    model.play(_write)
    chance, posted = random.Random(16), Posted()
    for _ in range(ROUNDS):
        with serving(home, **_settings(model)) as server:
            _kill_in_the_middle(server, posted, chance)
    with serving(home, **_settings(model)) as server:
        statuses = [
            status
            for conversation, answers in posted.answers.items()
            for status in _check(server.client, conversation, answers)
        ]
    assert len(statuses) == sum(map(len, posted.answers.values())) >= ROUNDS * AT_ONCE
    assert "interrupted" in statuses
    assert set(statuses) <= {"interrupted", "finished"}


@pytest.mark.soak("faults")
def test_fifty_answers_that_a_kill_broke_off_are_whole_and_can_be_asked_again(
    home: Home, model: ScriptedModel
) -> None:
    """Fifty are written side by side when the server is killed, beside some that are finished."""
    # One asker is never given all places.
    settings = {**_settings(model), "QUARRY_ANSWERS_AT_ONCE": str(4 * MANY)}
    finished, broken = Posted(), Posted()
    model.play(_write_at_once)
    with serving(home, **settings) as server:
        _begin_together(server, finished, AT_ONCE)
        for conversation, (message,) in finished.answers.items():
            assert list(_events_of(server.client, conversation, message, 0))[-1].name == "done"
        model.play(_write_and_hang)
        before = len(model.requests)
        _begin_together(server, broken, MANY)
        wait_until_reached(MANY, lambda: sum(one.has_sources for one in model.requests[before:]))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(SOON)
    model.play(_write_at_once)
    with serving(home, **settings) as server:
        assert _list_statuses(server.client, finished) == ["finished"] * AT_ONCE
        assert _list_statuses(server.client, broken) == ["interrupted"] * MANY
        listed = server.client.get(BASE, params={"limit": 100}).json()["conversations"]
        ids = [one["id"] for one in listed]
        assert {*finished.answers, *broken.answers} <= set(ids)
        assert len(set(ids)) == len(ids)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(partial(_ask_again, server), broken.answers.items()))


def _write_at_once(request: Request) -> Reply:
    found = _write(request)
    is_answer = isinstance(found, Say) and len(found.pieces) == len(WORDS)
    return Say(WORDS) if is_answer else found


def _begin_together(server: Serving, posted: Posted, number: int) -> None:
    def begin(_: int) -> None:
        with httpx.Client(base_url=server.url, timeout=60, headers=server.authorization) as client:
            posted.begin(client)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(begin, range(number)))


def _list_statuses(client: httpx.Client, posted: Posted) -> list[str]:
    return [
        status
        for conversation, answers in posted.answers.items()
        for status in _check(client, conversation, answers)
    ]


def _ask_again(server: Serving, broken: tuple[str, list[int]]) -> None:
    """Ask for another answer to the same question: the broken one stays beside it."""
    conversation, (message,) = broken
    with httpx.Client(base_url=server.url, timeout=60, headers=server.authorization) as client:
        before = client.get(f"{BASE}/{conversation}").json()["messages"]
        asked = client.post(f"{BASE}/{conversation}/messages/{message}/regenerate")
        assert asked.status_code == 202, asked.text
        again = asked.json()["answer"]["id"]
        assert list(_events_of(client, conversation, again, 0))[-1].name == "done"
        question, answer = client.get(f"{BASE}/{conversation}").json()["messages"]
        assert (question["id"], question["text"]) == (before[0]["id"], QUESTION["question"])
        assert (answer["id"], answer["status"]) == (again, "finished")
        assert answer["text"].startswith("".join(WORDS).strip())
        assert answer["siblings"] == [message, again]


def _kill_in_the_middle(server: Serving, posted: Posted, chance: random.Random) -> None:
    """Ask several questions at once, some of them again in old conversations, and kill the server as it answers them."""
    known = list(posted.answers)
    for old in known[:2]:
        posted.ask_again(server.client, old)
    for _ in range(AT_ONCE - len(known[:2])):
        posted.begin(server.client)
    asking = threading.Thread(target=_ask_on, args=(server, posted), daemon=True)
    asking.start()
    time.sleep(chance.uniform(0.1, 2))
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(SOON)
    asking.join(SOON)


def _ask_on(server: Serving, posted: Posted) -> None:
    """Ask until the server is gone. What it has not confirmed may be there, or not."""
    with httpx.Client(base_url=server.url, timeout=SOON, headers=server.authorization) as client:
        try:
            while True:
                posted.begin(client)
                time.sleep(0.3)
        except httpx.TransportError:
            return


def _check(client: httpx.Client, conversation: str, answers: list[int]) -> list[str]:
    opened = client.get(f"{BASE}/{conversation}").json()
    assert not opened["conversation"]["running"]
    messages: list[Any] = opened["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant"] * len(answers)
    assert [one["id"] for one in messages[1::2]] == answers
    assert {one["text"] for one in messages[::2]} == {QUESTION["question"]}
    for answer in messages[1::2]:
        _check_answer(client, conversation, answer)
    return [one["status"] for one in messages[1::2]]


def _check_answer(client: httpx.Client, conversation: str, answer: Any) -> None:
    found = list(_events_of(client, conversation, answer["id"], 0))
    assert [one.id for one in found] == list(range(1, len(found) + 1))
    assert "".join(_texts(found)) == answer["text"]
    if answer["status"] == "finished":
        assert found[-1].name == "done"
        return
    assert found[-1].name == "interrupted"
    assert answer["notice"] == "This answer was interrupted: the server ended. Ask again."
    assert "".join(WORDS).startswith(answer["text"])
