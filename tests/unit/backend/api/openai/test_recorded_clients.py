"""The requests of chat programs, written down from what they send, and what those programs read of the answers."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.openai.conftest import BOB, Office, answer_well

RECORDED = Path(__file__).parent / "recorded"
TITLE = "Parental leave"


def _read_recorded(program: str) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = json.loads((RECORDED / f"{program}.json").read_text("utf-8"))
    return recorded


def _answer_or_name(request: Request) -> Reply:
    return Say(TITLE) if "title" in request.questions[-1] else answer_well(request)


def _send(office: Office, recorded: dict[str, Any]) -> httpx.Response:
    given = recorded["headers"] | {"Authorization": f"Bearer {office.make_token(BOB)}"}
    return httpx.request(
        recorded["method"],
        f"{office.url}/v1{recorded['path']}",
        headers=given,
        json=recorded.get("body"),
        timeout=60,
    )


@pytest.mark.parametrize("program", ["open_webui", "librechat"])
def test_a_chat_program_is_answered_as_it_expects(
    office: Office, model: ScriptedModel, program: str
) -> None:
    model.play(_answer_or_name)
    listing, question, title = _read_recorded(program)
    listed = _send(office, listing).json()
    assert listed["object"] == "list"
    assert {"id", "object", "owned_by", "name"} <= listed["data"][0].keys()
    assert question["body"]["model"] == listed["data"][0]["id"]
    chunks = _read_chunks(_send(office, question))
    deltas = [one["delta"] for chunk in chunks for one in chunk["choices"]]
    assert "".join(one.get("content", "") for one in deltas) == "Parents have 26 weeks [1]."
    (annotation,) = [one for delta in deltas for one in delta.get("annotations", [])]
    assert annotation["url_citation"]["title"] == "Parental leave"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] > 0
    (asked,) = [request for request in model.requests if request.answers]
    assert "Be friendly." in asked.messages[0]["content"]
    assert asked.questions[0] == "Hello"
    named = _send(office, title).json()
    assert named["choices"][0]["message"]["content"] == TITLE


def _read_chunks(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.splitlines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
