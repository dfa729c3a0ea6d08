"""The scripted model keeps to the protocol that it stands in for, whole answers included."""

import httpx

from tests.support.scripted_model import Call, Refuse, Say, ScriptedModel, ToolUse


def chat(server: ScriptedModel, **body: object) -> httpx.Response:
    request = {"model": "scripted", "messages": [{"role": "user", "content": "?"}], **body}
    return httpx.post(f"{server.base_url}/chat/completions", json=request)


def test_it_lists_its_model(server: ScriptedModel) -> None:
    assert httpx.get(f"{server.base_url}/models").json()["data"][0]["id"] == "scripted"
    assert httpx.get(f"{server.base_url}/other").status_code == 404


def test_whole_answers(server: ScriptedModel) -> None:
    server.play([Say("25 days"), Call(ToolUse("internal_search", {"queries": ["a"]}))])
    said = chat(server).json()["choices"][0]
    assert (said["message"]["content"], said["finish_reason"]) == ("25 days", "stop")
    called = chat(server).json()["choices"][0]
    assert called["message"]["tool_calls"][0]["function"] == {
        "name": "internal_search",
        "arguments": '{"queries": ["a"]}',
    }


def test_a_script_may_answer_by_what_is_asked(server: ScriptedModel) -> None:
    server.play(lambda request: Say(str(request.messages[0]["content"]).upper()))
    assert chat(server).json()["choices"][0]["message"]["content"] == "?"


def test_a_script_that_has_run_out_says_so(server: ScriptedModel) -> None:
    server.play([])
    assert "no more replies" in chat(server).json()["error"]["message"]


def test_a_refusal_carries_its_headers(server: ScriptedModel) -> None:
    server.play([Refuse(429, headers={"Retry-After": "3"})])
    assert chat(server).headers["retry-after"] == "3"
