"""`GET /metrics`: the figures of this server, for Prometheus."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from backend.api.authorization import Rule, ruled
from backend.api.dependencies import PartsIs

router = APIRouter()


@router.get("/metrics", include_in_schema=False)
@ruled(Rule.OWNER)
def metrics(parts: PartsIs) -> Response:
    """Also while other parts are not ready yet: that is when one wants to know."""
    return Response(parts.metrics.told(), media_type=CONTENT_TYPE_LATEST)
