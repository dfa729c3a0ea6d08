"""The description of the API against the API: examples, and requests that schemathesis makes up."""

import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from schemathesis import GenerationMode

from backend.sample import handbook
from tests.support.home import Home
from tests.support.made_up_requests import check_answers, list_operations
from tests.support.serving import Serving, events, serving

SAMPLE = ("support", "finance")
EXAMPLES = 12
"""Of each operation, valid ones and others."""

OPENAI_BODIES = {
    "ChatCompletionBody": "/v1/chat/completions",
    "ResponseBody": "/v1/responses",
    "EmbeddingsBody": "/v1/embeddings",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A home of its own: what is made up may add sources, and sync them."""
    path = tmp_path_factory.mktemp("made-up")
    for name in SAMPLE:
        shutil.copytree(handbook() / name, path / "handbook" / name)
    shutil.copy(handbook() / "access.yaml", path / "handbook")
    home = Home(path)
    assert home.quarry("add", "folder", str(path / "handbook")).code == 0
    assert home.quarry("sync").code == 0
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def description(server: Serving) -> Any:
    return server.client.get("/openapi.json").json()


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: f"{mode.value} data")
def test_whatever_is_sent_is_answered_as_described(
    server: Serving, description: Any, mode: GenerationMode
) -> None:
    operations = list_operations(description)
    assert len(operations) == sum(map(len, description["paths"].values())) > 20
    for operation in operations:
        if mode.is_positive or operation.body or operation.query:
            cases = operation.as_strategy(generation_mode=mode)
            check_answers(cases, server.url, server.authorization, EXAMPLES)


def _operations(description: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def _has_example(content: Any) -> bool:
    return any("example" in one or "examples" in one for one in content.values())


def test_every_route_has_examples_of_what_is_sent_and_answered(description: Any) -> None:
    shapes = description["components"]["schemas"]
    for name, operation in _operations(description):
        status, answer = next(
            (status, actual) for status, actual in operation["responses"].items() if status < "300"
        )
        assert status == "204" or _has_example(answer["content"]), name
        if body := operation.get("requestBody"):
            if form := body["content"].get("multipart/form-data"):
                assert form["example"], name
                continue
            if form := body["content"].get("application/x-www-form-urlencoded"):
                assert form["example"], name
                continue
            reference = body["content"]["application/json"]["schema"]["$ref"]
            assert shapes[reference.rpartition("/")[2]]["examples"], name


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/api/ask",
            "queries narrowed first_results planned lost results selected web_searched pages_read earlier_findings passages reasoning text citation done error",
        ),
        ("/api/sources/{name}/sync", "progress done error"),
        (
            "/api/conversations/{conversation_id}/messages/{message_id}/events",
            "queries narrowed first_results planned lost results selected web_searched pages_read earlier_findings passages reasoning text citation done error"
            " files stopped interrupted",
        ),
        (
            "/api/research/{research_id}/events",
            "clarification plan state resumed task_started action_started source action_done cited_sources task_done round reports_withdrawn"
            " report_started report_checked text report withheld done stopped failed error",
        ),
    ],
)
def test_every_event_has_an_example_and_a_shape(description: Any, path: str, expected: str) -> None:
    (operation,) = description["paths"][path].values()
    answer = operation["responses"]["200"]
    stream = answer["content"]["text/event-stream"]
    shapes = {one["properties"]["event"]["const"]: one for one in stream["itemSchema"]["oneOf"]}
    assert set(stream["examples"]) == set(shapes) == set(expected.split())
    for name, example in stream["examples"].items():
        (event,) = events(example["value"].split("\n"))
        reference = shapes[name]["properties"]["data"]["contentSchema"]["$ref"]
        shape = description["components"]["schemas"][reference.rpartition("/")[2]]
        assert event.name == name
        assert set(event.data) == set(shape["properties"])


def test_the_examples_of_requests_are_valid(server: Serving, description: Any) -> None:
    shapes = description["components"]["schemas"]
    (search,) = shapes["SearchBody"]["examples"]
    assert server.client.post("/api/search", json=search).status_code == 200
    for shape, path in OPENAI_BODIES.items():
        (body,) = shapes[shape]["examples"]
        assert server.client.post(path, json=body).status_code == 200
    (ask,) = shapes["AskBody"]["examples"]
    with server.client.stream("POST", "/api/ask", json=ask) as response:
        assert isinstance(response, httpx.Response)
        assert response.status_code == 200
