"""Every error is a problem document that says what to do next."""

from datetime import timedelta

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse, Response

from backend.api.app import Api, create_app
from backend.api.authorization import Permission, requires
from backend.api.problem_details import from_error
from backend.chat.events import AnswerFailedError, TurnFailed
from backend.container import Container
from backend.conversations.assistant_service import AssistantRefusedError
from backend.conversations.followed_turn import WithheldError
from backend.conversations.project_service import ProjectRefusedError
from backend.research.knowledge.service import KnowledgeRefusedError
from backend.schemas.system import ProblemDetails
from backend.search.llm_protocol import CompletionError
from connectors.errors import (
    ActionRequiredError,
    ConflictError,
    DamagedDataError,
    InvalidInputError,
    NotAllowedError,
    NotConfiguredError,
    NotFoundError,
    SourceAuthError,
    SourceError,
    TemporarilyUnavailableError,
)
from indexing.runtime.deadline import DeadlineExceededError
from tests.unit.backend.api.conftest import ADDRESS, authorization, owner


def _failing(container: Container, error: Exception) -> TestClient:
    app = create_app(container, owner(container))
    _add(app, error)
    return TestClient(
        app, base_url=ADDRESS, headers=authorization(app), raise_server_exceptions=False
    )


def _add(app: Api, error: Exception) -> None:
    @requires(Permission.ANYONE)
    def fail() -> None:
        raise error

    app.get("/api/fail")(fail)


@pytest.mark.parametrize(
    "kind", [AssistantRefusedError, KnowledgeRefusedError, ProjectRefusedError, WithheldError]
)
def test_what_the_asker_may_not_do_is_forbidden_without_advice(
    container: Container, kind: type[NotAllowedError]
) -> None:
    got = _failing(container, kind("Only the owner may.")).get("/api/fail")
    assert got.status_code == 403
    assert got.json() == {
        "type": "about:blank",
        "title": "Forbidden",
        "status": 403,
        "detail": "Only the owner may.",
    }


def test_what_passes_is_reported_with_when_to_come_again(container: Container) -> None:
    got = _failing(
        container, TemporarilyUnavailableError("The index is busy.", timedelta(seconds=1.2))
    ).get("/api/fail")
    assert (got.status_code, got.headers["retry-after"]) == (503, "2")
    assert got.json() == {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "The index is busy.",
        "advice": "Try again in 2 s.",
    }


def test_what_a_person_must_mend_is_reported_by_what_it_is(container: Container) -> None:
    got = _failing(container, ActionRequiredError("The index is damaged: remove it.")).get(
        "/api/fail"
    )
    assert (got.status_code, got.json()["detail"]) == (500, "The index is damaged: remove it.")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (NotFoundError, 404),
        (ConflictError, 409),
        (InvalidInputError, 422),
        (NotConfiguredError, 503),
        (SourceAuthError, 502),
        (SourceError, 502),
        (DamagedDataError, 500),
    ],
)
def test_each_error_has_its_status(
    container: Container, kind: type[ActionRequiredError], status: int
) -> None:
    got = _failing(container, kind("The key file is damaged.")).get("/api/fail")
    assert (got.status_code, got.json()["detail"]) == (status, "The key file is damaged.")
    assert "Retry-After" not in got.headers
    assert ("advice" in got.json()) == (status >= 500)


def test_the_advice_of_an_error_replaces_that_of_its_kind(container: Container) -> None:
    for error in (
        ConflictError("It runs.", "Stop it."),
        SourceError("It answers nonsense.", "Stop it."),
        TemporarilyUnavailableError("It is busy.", timedelta(seconds=9), "Stop it."),
        AnswerFailedError("There is no answer.", "Stop it."),
    ):
        got = _failing(container, error).get("/api/fail").json()
        assert (got["detail"], got["advice"]) == (str(error), "Stop it.")


def test_a_failed_turn_is_unavailable_whether_it_passes_or_not() -> None:
    for failed in (
        TurnFailed("The language model is busy.", "Ask again.", retry_after=timedelta(seconds=9)),
        TurnFailed("The message is too long.", "Ask again."),
    ):
        problem = from_error(failed.to_error())
        assert (problem.status, problem.detail, problem.advice) == (
            503,
            failed.message,
            "Ask again.",
        )


def test_what_should_have_been_caught_before_is_an_internal_error(container: Container) -> None:
    error = CompletionError("The server said: key sk-1.")
    got = _failing(container, error).get("/api/fail")
    assert got.status_code == 500
    assert "sk-1" not in got.text
    with pytest.raises(ValueError, match="CompletionError has no status"):
        from_error(error)


def test_late_is_late(container: Container) -> None:
    assert _failing(container, DeadlineExceededError("late")).get("/api/fail").status_code == 504


def test_a_mistake_reveals_nothing_of_itself_but_where_to_look(container: Container) -> None:
    got = _failing(container, KeyError("password")).get(
        "/api/fail", headers={"x-request-id": "e-7"}
    )
    assert got.status_code == 500
    assert got.headers["content-type"] == "application/problem+json"
    assert "e-7" in got.json()["detail"]
    assert "password" not in got.text
    # All that stands around an answer stands around this one.
    assert got.headers["x-request-id"] == "e-7"
    assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/no/such/page", 404),
        ("GET", "/api/nothing", 404),
        ("DELETE", "/api/sources", 405),
        ("GET", "/api/search", 405),
        ("POST", "/api/search", 422),
    ],
)
def test_the_framework_speaks_as_we_do(
    client: TestClient, method: str, path: str, status: int
) -> None:
    got = client.request(method, path)
    assert (got.status_code, got.headers["content-type"]) == (status, "application/problem+json")
    assert got.json()["status"] == status
    assert ("allow" in got.headers) is (status == 405)


def _page(request: Request, problem: ProblemDetails) -> Response:
    return PlainTextResponse(f"{request.url.path}: {problem.detail}", problem.status)


@pytest.mark.parametrize(
    ("path", "accept", "is_page"),
    [
        ("/nowhere", "text/html,*/*", True),
        ("/nowhere", "*/*", False),
        ("/api/nowhere", "text/html", False),
    ],
)
def test_people_are_shown_a_page(
    container: Container, path: str, accept: str, *, is_page: bool
) -> None:
    app = create_app(container, owner(container), error_page=_page)
    client = TestClient(app, base_url=ADDRESS, headers=authorization(app))
    got = client.get(path, headers={"accept": accept})
    assert got.status_code == 404
    assert got.text.startswith("/nowhere: There is no page") is is_page
