"""The description of the API: names, and examples of what is sent, answered and streamed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import events
from tests.unit.backend.api.conftest import api, make_container


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return api(make_container(tmp_path_factory.mktemp("openapi"))).openapi()


def test_every_shape_has_a_name_of_its_own(description: Any) -> None:
    """Two models of one name would be told apart by the modules they lie in."""
    assert [name for name in description["components"]["schemas"] if "__" in name] == []


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
            "clarification plan state resumed task_started action_started source earlier_findings action_done cited_sources task_done round reports_withdrawn"
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
