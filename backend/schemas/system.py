"""JSON of problems, checks and readiness."""

from typing import Literal

from backend.schemas.base import Schema, with_example


class DoctorCheck(Schema):
    name: str
    state: Literal["ok", "warning", "failed", "off"]
    detail: str
    advice: str | None = None


class FieldError(Schema):
    where: str
    message: str


class ProblemDetails(Schema):
    """What went wrong, as RFC 9457 has it."""

    model_config = with_example(
        title="Not Found", status=404, detail="The document does not exist, or you may not read it."
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    advice: str | None = None
    """What to do about it."""
    errors: tuple[FieldError, ...] = ()
    """Of the request, each with its place."""


class HealthResponse(Schema):
    model_config = with_example(status="ok", version="0.1.0")

    status: Literal["ok"] = "ok"
    version: str


class PartStatus(Schema):
    name: str
    state: Literal["waiting", "ready", "failed"]
    detail: str


class ReadinessResponse(Schema):
    model_config = with_example(
        ready=True, parts=[{"name": "database", "state": "ready", "detail": ""}]
    )

    ready: bool
    parts: tuple[PartStatus, ...]
