"""`GET /metrics`: the metrics of this server, for Prometheus."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from backend.api.authorization import Permission, requires
from backend.api.dependencies import AppStateDependency

router = APIRouter()


@router.get("/metrics", include_in_schema=False)
@requires(Permission.METRICS)
def metrics(state: AppStateDependency) -> Response:
    """Return the metrics, also while other parts are not ready yet."""
    return Response(state.metrics.render(), media_type=CONTENT_TYPE_LATEST)
