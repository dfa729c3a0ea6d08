"""Whether the server lives, whether it can be asked, and what can be asked of it."""

from typing import Any

from fastapi import APIRouter, Request, Response

from backend.api import openapi
from backend.api.authorization import Rule, ruled
from backend.api.dependencies import PartsIs
from backend.schemas.system import HealthResponse, ReadinessResponse

router = APIRouter()


# These do not wait for a thread: they are answered however busy the others are.
@router.get(
    "/healthz",
    summary="Whether the server answers at all",
)
@ruled(Rule.ANYONE)
async def healthy(request: Request) -> HealthResponse:
    return HealthResponse(version=request.app.version)


@router.get(
    "/readyz",
    responses={
        503: openapi.UNREADY,
    },
    summary="Whether every part is ready, and if not, which",
)
@ruled(Rule.ANYONE)
async def ready(parts: PartsIs, response: Response) -> ReadinessResponse:
    status = parts.readiness.status()
    response.status_code = 200 if status.ready else 503
    return status


@router.get("/openapi.json", include_in_schema=False)
@ruled(Rule.ANYONE)
async def openapi_description(request: Request) -> dict[str, Any]:
    description: dict[str, Any] = request.app.openapi()
    return description
