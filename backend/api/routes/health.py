"""Whether the server lives, whether it can be asked, and what can be asked of it."""

from typing import Any

from fastapi import FastAPI, Request, Response

from backend.api import openapi_examples
from backend.api.authorization import Rule, ruled
from backend.api.dependencies import PartsIs
from backend.schemas.models import HealthWire, ReadyWire


def add_routes(app: FastAPI) -> None:
    app.get(
        "/healthz",
        responses={200: openapi_examples.answer(openapi_examples.HEALTHY)},
        summary="Whether the server answers at all",
    )(healthy)
    app.get(
        "/readyz",
        responses={
            200: openapi_examples.answer(openapi_examples.READY),
            503: openapi_examples.unready(),
        },
        summary="Whether every part is ready, and if not, which",
    )(ready)
    app.get("/openapi.json", include_in_schema=False)(openapi)


# These do not wait for a thread: they are answered however busy the others are.
@ruled(Rule.ANYONE)
async def healthy(request: Request) -> HealthWire:
    return HealthWire(version=request.app.version)


@ruled(Rule.ANYONE)
async def ready(parts: PartsIs, response: Response) -> ReadyWire:
    told = parts.readiness.told()
    response.status_code = 200 if told.ready else 503
    return told


@ruled(Rule.ANYONE)
async def openapi(request: Request) -> dict[str, Any]:
    description: dict[str, Any] = request.app.openapi()
    return description
