"""The HTTP API, put together. Pages may be mounted on it; they share askers, rules and problems."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from fastapi import Depends, FastAPI
from starlette.types import ASGIApp

from backend.api import openapi, problem_details
from backend.api.access_log import RequestLog
from backend.api.authentication import Askers
from backend.api.authorization import admitted, unruled
from backend.api.dependencies import AnswerHtml, Parts
from backend.api.metrics_collector import Metrics
from backend.api.problem_details import ErrorPage
from backend.api.request_context import Departures
from backend.api.request_guard import Guard
from backend.api.routes import admin, ask, documents, health, metrics, search, sources
from backend.api.sync_runs import Syncs
from backend.api.warmup import Readiness, Served
from backend.container import Container
from backend.version import read_version

THREADS = 8
"""For requests. A search is work for a processor: more at once would only wait for one another."""
LAST_STEP = 10.0
"""Seconds that a sync may take to come to the end of a step when the server stops."""

DESCRIPTION = """\
Search and ask what Quarry holds. Every answer is limited to what the asker may read.

Errors are problem details (RFC 9457). Long answers are server-sent events, of which the last is
`done` or `error`. `X-Request-Id` is taken from a request, or made, and stands in the log.
"""


class Api(FastAPI):
    """FastAPI, with our layers around all of it: also around what it answers when it fails."""

    def build_middleware_stack(self) -> ASGIApp:
        parts: Parts = self.state.parts
        guarded = Departures(Guard(super().build_middleware_stack()), parts.visits)
        return RequestLog(guarded, parts.metrics.answered)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            openapi.complete(super().openapi())
        return super().openapi()


def create_app(
    container: Container,
    askers: Askers,
    answer_html: AnswerHtml = ask.plain_html,
    error_page: ErrorPage | None = None,
) -> Api:
    """The API over `quarry`. Warms up when it is started.

    Args:
        answer_html: an answer for people, rendered and cleaned.
        error_page: how a problem is shown in a browser, outside of the API.
    """
    app = Api(
        title="Quarry",
        version=read_version(),
        description=DESCRIPTION,
        lifespan=_lifespan,
        dependencies=[Depends(admitted)],
        responses=openapi.PROBLEMS,
        generate_unique_id_function=lambda route: route.name,
        # The pages of these load scripts from elsewhere; and what is asked goes nowhere else.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    app.state.askers = askers
    served = Served(container)
    readiness = Readiness(served.parts(), served.reopen_if_switched)
    app.state.parts = Parts(
        served=served,
        readiness=readiness,
        syncs=Syncs(lambda: served.container),
        answer_html=answer_html,
        metrics=Metrics(served, readiness),
    )
    problem_details.register(app, error_page)
    for routes in (search, ask, documents, sources, admin, health, metrics):
        app.include_router(routes.router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    if open_to_nobody := list(unruled(app.routes)):
        raise ValueError(f"routes without a rule: {', '.join(open_to_nobody)}")
    parts: Parts = app.state.parts
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    parts.readiness.start()
    yield
    parts.readiness.stop()
    parts.visits.close()
    await to_thread.run_sync(parts.syncs.stop, LAST_STEP)
