"""The description of the API against the API: examples, and requests that schemathesis makes up."""

import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from backend.sample import handbook
from tests.support.home import Home
from tests.support.serving import Serving, events, serving

SAMPLE = ("support", "finance")
CONFIG = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
"""Every request is authorized: what is made up beside the secret changes nothing."""
EXAMPLES = 12
"""Of each operation, valid ones and others."""
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
    unsupported_method,
    allow_header_conformance,
)


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
    schema = schemathesis.openapi.from_url(
        f"{server.url}/openapi.json", config=CONFIG, headers=server.authorization
    )
    operations = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    assert len(operations) == sum(map(len, description["paths"].values())) > 20
    for operation in operations:
        if mode.is_positive or operation.body or operation.query:
            _check_with(operation.as_strategy(generation_mode=mode), server.authorization)


def _check_with(cases: SearchStrategy[Any], authorization: dict[str, str]) -> None:
    @given(cases)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        case.call_and_validate(checks=list(CHECKS), timeout=60, headers=authorization)

    check()


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
            reference = body["content"]["application/json"]["schema"]["$ref"]
            assert shapes[reference.rpartition("/")[2]]["examples"], name


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/api/ask",
            "queries narrowed first_results results selected lost passages reasoning text citation done error",
        ),
        ("/api/sources/{name}/sync", "progress done error"),
        (
            "/api/conversations/{conversation_id}/messages/{message_id}/events",
            "queries narrowed first_results results selected lost passages reasoning text citation done error"
            " files stopped interrupted",
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
    (ask,) = shapes["AskBody"]["examples"]
    with server.client.stream("POST", "/api/ask", json=ask) as response:
        assert isinstance(response, httpx.Response)
        assert response.status_code == 200
