"""Below `/v1` every problem has OpenAI's shape, whoever finds it."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.api.openai.completions import EncodedData
from backend.api.request_guard import MOST_WITH_PICTURES
from backend.container import Container
from tests.support.scripted_model import ScriptedModel
from tests.unit.backend.api.conftest import client_of, connected, make_container
from tests.unit.backend.api.openai.conftest import QUESTION
from tests.unit.backend.api.test_busy_server import SOON, Model

ASKED = {"model": "default", "messages": [{"role": "user", "content": QUESTION}]}
PATH = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "kind"),
    [
        ("GET", "/v1/nothing", {}, 404, "invalid_request_error"),
        ("GET", PATH, {}, 405, "invalid_request_error"),
        ("POST", PATH, {}, 400, "invalid_request_error"),
        ("POST", PATH, {"Authorization": "Bearer sk-1"}, 401, "authentication_error"),
        ("POST", PATH, {"Origin": "https://evil.example.com"}, 403, "permission_error"),
        ("POST", PATH, {"Host": "evil.example.com"}, 421, "invalid_request_error"),
        ("GET", "/v1/models", {"Accept": "text/html", "Authorization": "x"}, 401, "authentication_error"),
    ],
)  # fmt: skip
def test_whoever_refuses_says_it_as_openai_does(
    client: TestClient, method: str, path: str, headers: dict[str, str], status: int, kind: str
) -> None:
    answer = client.request(method, path, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == kind
    assert error["message"]
    assert ("allow" in answer.headers) is (status == 405)


def test_a_request_may_hold_pictures_and_no_more(client: TestClient) -> None:
    length = {"Content-Length": str(MOST_WITH_PICTURES + 1)}
    answer = client.post(PATH, content=b"{}", headers=length)
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "invalid_request_error")
    other = client.post("/v1/embeddings", content=b"{}", headers={"Content-Length": "1000001"})
    assert other.status_code == 413


def test_what_is_not_json_is_refused(client: TestClient) -> None:
    answer = client.post(PATH, content=b"{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] is None
    assert answer.json()["error"]["message"] == "JSON decode error."


def test_without_a_language_model_the_best_sentences_are_the_answer(client: TestClient) -> None:
    answer = client.post(PATH, json=ASKED).json()
    message = answer["choices"][0]["message"]
    assert "26 weeks" in message["content"]
    cited = message["annotations"][0]["url_citation"]
    assert message["content"][cited["start_index"] : cited["end_index"]] == "[1]"
    assert answer["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_a_piece_that_cannot_be_sent_ends_the_stream_as_openai_does(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = EncodedData.encoded

    def refuse_text(piece: EncodedData, number: int) -> bytes:
        if "weeks" in piece.data:
            raise ValueError("half a character")
        return encode(piece, number)

    monkeypatch.setattr(EncodedData, "encoded", refuse_text)
    answer = client.post(PATH, json=ASKED | {"stream": True})
    assert answer.status_code == 200
    last = answer.text.strip().split("\n\n")[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["type"] == "server_error"


def test_while_the_answers_are_full_a_client_is_told_when_to_come_again(
    tmp_path: Path, folder: Path
) -> None:
    model = Model()
    with ScriptedModel(model.reply) as server, ThreadPoolExecutor() as threads:
        container = _make_crowded(tmp_path, server)
        connected(container, folder)
        with client_of(container) as client:
            held = threads.submit(client.post, PATH, json=ASKED)
            assert model.asked.wait(SOON)
            refused = [client.post(PATH, json=ASKED | more) for more in ({}, {"stream": True})]
            model.released.set()
            assert held.result(SOON).status_code == 200
    for one in refused:
        assert (one.status_code, one.json()["error"]["type"]) == (503, "server_error")
        assert int(one.headers["Retry-After"]) >= 1
        assert "x-should-retry" not in one.headers


def _make_crowded(home: Path, server: ScriptedModel) -> Container:
    return make_container(
        home,
        llm_url=server.base_url,
        llm_model="scripted",
        answers_at_once=1,
        requests_waiting=0,
    )
