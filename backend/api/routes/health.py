"""`/healthz`, `/readyz` and `/openapi.json`."""

from typing import Any

from fastapi import APIRouter, Request, Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import AppStateDependency
from backend.schemas.system import HealthResponse, ReadinessResponse

router = APIRouter()


# Asynchronous, so that they do not wait for a thread however busy the server is.
@router.get(
    "/healthz",
    openapi_extra={"security": []},
    summary="Whether the server answers at all",
)
@requires(Permission.ANYONE)
async def healthy(request: Request) -> HealthResponse:
    return HealthResponse(version=request.app.version)


@router.get(
    "/readyz",
    openapi_extra={"security": []},
    responses={
        503: openapi.UNREADY,
    },
    summary="Whether every part is ready, and if not, which",
)
@requires(Permission.ANYONE)
async def ready(state: AppStateDependency, response: Response) -> ReadinessResponse:
    status = state.warmup.status()
    response.status_code = 200 if status.ready else 503
    return status


@router.get("/openapi.json", include_in_schema=False)
@requires(Permission.SEARCH)
async def openapi_description(request: Request) -> dict[str, Any]:
    description: dict[str, Any] = request.app.openapi()
    return description
