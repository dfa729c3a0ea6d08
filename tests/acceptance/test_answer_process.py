"""Answers that are written at once by the process that `quarry serve` starts for them."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.container import Container
from backend.settings import Settings
from backend.store.chat import turns
from backend.sync.run_lease import is_dead
from backend.worker import answer_worker
from tests.support.home import Home
from tests.support.scripted_model import Call, Manner, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.server_processes import wait_for
from tests.support.serving import Serving, events, list_processes, serving

BASE = "/api/conversations"
QUESTION = {"question": "What should a customer do when the scanner shows QX-4031?"}
WORDS = ["Close ", "the ", "cover ", "until ", "it ", "clicks [1]."]
AT_ONCE = 4
"""The first two are written by the server itself."""
SOON = 20.0


def _write(request: Request) -> Reply:
    if request.has_sources:
        return Say(WORDS)
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031"]}))
    return Say("QX-4031")


def _write_and_hang(request: Request) -> Reply:
    return Say(WORDS, manner=Manner(stall_after=3)) if request.has_sources else _write(request)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(_write) as running:
        yield running


@pytest.fixture
def server(home: Home, model: ScriptedModel) -> Iterator[Serving]:
    model.play(_write_and_hang)
    with serving(home, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as running:
        yield running


class _Answers:
    """Answers of a server that hang in their midst."""

    def __init__(self, server: Serving, home: Home, count: int) -> None:
        self._server = server
        self._home = Path(home.environment()["QUARRY_HOME"])
        self.places = [self._begin() for _ in range(count)]

    def _begin(self) -> tuple[str, int]:
        begun = self._server.client.post(BASE, json=QUESTION)
        assert begun.status_code == 202, begun.text
        return begun.json()["conversation"]["id"], begun.json()["answer"]["id"]

    def find_process(self) -> int:
        """Return the id of the process that writes the last one."""
        with closing(Container(Settings(home=self._home))) as container:
            open_turns = turns.list_open(container.database)
        writers = {turn.message_id: turn.holder.number for turn in open_turns}
        return writers[self.places[-1][1]]

    def follow(self, place: tuple[str, int]) -> Iterator[str]:
        """Yield the names of the events of an answer, to the last."""
        path = f"{BASE}/{place[0]}/messages/{place[1]}/events"
        with self._server.client.stream("GET", path) as response:
            yield from (event.name for event in events(response.iter_lines()))

    def wait_for_text(self) -> None:
        for place in self.places:
            assert "text" in self.follow(place)

    def read_answer(self, place: tuple[str, int]) -> dict[str, Any]:
        opened = self._server.client.get(f"{BASE}/{place[0]}").json()
        answer: dict[str, Any] = opened["messages"][-1]
        return answer

    def is_interrupted(self, place: tuple[str, int]) -> bool:
        return bool(self.read_answer(place)["status"] == "interrupted")

    def stop(self, place: tuple[str, int]) -> None:
        path = f"{BASE}/{place[0]}/messages/{place[1]}/stop"
        assert self._server.client.post(path).status_code == 202


def _list_priorities(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").iterdir():
        yield os.getpriority(os.PRIO_PROCESS, int(task.name))


@pytest.fixture
def answers(server: Serving, home: Home) -> _Answers:
    answers = _Answers(server, home, AT_ONCE)
    answers.wait_for_text()
    return answers


def test_several_at_once_are_followed_and_stopped_wherever_they_are_written(
    server: Serving, answers: _Answers
) -> None:
    writer = answers.find_process()
    assert writer in list_processes(server.process.pid)
    wait_for(lambda: set(_list_priorities(writer)) == {answer_worker.NICENESS})
    for place in answers.places:
        answers.stop(place)
        assert list(answers.follow(place))[-1] == "stopped"
        answer = answers.read_answer(place)
        assert answer["status"] == "stopped"
        assert answer["text"].rstrip() == "Close the cover"


def test_where_the_process_is_killed_its_answers_alone_are_interrupted(
    server: Serving, answers: _Answers, model: ScriptedModel
) -> None:
    *local, third, fourth = answers.places
    os.kill(answers.find_process(), signal.SIGKILL)
    wait_for(lambda: answers.is_interrupted(third) and answers.is_interrupted(fourth))
    assert [answers.read_answer(place)["status"] for place in local] == ["running"] * len(local)
    model.play(_write)
    again = server.client.post(f"{BASE}/{fourth[0]}/messages/{fourth[1]}/regenerate")
    assert again.status_code == 202, again.text
    *_, last = answers.follow((fourth[0], again.json()["answer"]["id"]))
    assert last == "done"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_the_server_and_keeps_what_was_written(
    home: Home, server: Serving, answers: _Answers, number: int
) -> None:
    with closing(Container(Settings(home=Path(home.environment()["QUARRY_HOME"])))) as container:
        holders = [turn.holder for turn in turns.list_open(container.database)]
    _, seconds = server.stop(number)
    assert seconds < SOON
    wait_for(lambda: all(map(is_dead, holders)))
    with serving(home) as following:
        after = _Answers(following, home, 0)
        for place in answers.places:
            answer = after.read_answer(place)
            assert answer["status"] == "interrupted"
            assert answer["text"].rstrip() == "Close the cover"


def test_without_it_the_server_writes_all(home: Home, model: ScriptedModel) -> None:
    model.play(_write_and_hang)
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    with serving(home, QUARRY_ANSWER_PROCESS="false", **settings) as server:
        answers = _Answers(server, home, AT_ONCE)
        assert answers.find_process() == server.process.pid
