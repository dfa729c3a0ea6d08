"""The API against its description: the examples of requests, and requests that schemathesis makes up."""

import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from schemathesis import GenerationMode

from backend.sample import handbook
from tests.support.home import Home
from tests.support.made_up_requests import check_answers, list_operations
from tests.support.serving import Serving, serving

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
