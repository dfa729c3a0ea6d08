"""The HTTP API, put together. Pages may be mounted on it; they share authentication, permissions and problems."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.types import ASGIApp

from backend.api import openapi, problem_details
from backend.api.access_log import AccessLogMiddleware
from backend.api.answer_events import AnswerHtml, plain_html
from backend.api.answer_process import StartProcess
from backend.api.authentication import AuthenticationMiddleware, Authenticator
from backend.api.authorization import find_unprotected_routes
from backend.api.conversation_turns import ConversationTurns
from backend.api.cross_origin import CrossOriginMiddleware
from backend.api.dependencies import AppState
from backend.api.mcp_asker import find_mcp_asker
from backend.api.metrics_collector import Metrics
from backend.api.problem_details import ErrorPage
from backend.api.public_address import PublicAddress
from backend.api.request_context import DisconnectMiddleware
from backend.api.request_guard import MOST_BYTES, RequestGuardMiddleware
from backend.api.request_pools import RequestPools
from backend.api.router import API_ROUTER, DEPENDENCIES, name_operation
from backend.api.server_processes import ServerProcesses
from backend.api.sync_runs import SyncRunRegistry, no_other_servers
from backend.api.translations import FindTranslation, keep_english
from backend.api.warmup import CurrentContainer, Warmup
from backend.container import Container
from backend.files.file_keeper import FileKeeper
from backend.programs.mcp.http_transport import HttpTransport
from backend.version import read_version

SPARE_THREADS = 4
"""Worker threads beside those of the requests that have their turn: for authentication, and for scrapes."""
LAST_STEP = 1.0
"""Seconds that a sync has to finish a step when the server stops."""

DESCRIPTION = """\
Search and question the documents in Quarry. Every answer is limited to what the asker may read.

Errors are problem details (RFC 9457), below `/v1` those of OpenAI's API. Long answers are server-sent events, of which the last is
`done` or `error`. `X-Request-Id` is taken from the request or generated; the log contains it.
"""


class Api(FastAPI):
    """FastAPI with middleware around all of it, also around its error handlers."""

    def build_middleware_stack(self) -> ASGIApp:
        state: AppState = self.state.app_state
        for_pages = CrossOriginMiddleware(super().build_middleware_stack())
        app = DisconnectMiddleware(
            RequestGuardMiddleware(for_pages, state.public_address), state.active_requests
        )
        return AccessLogMiddleware(app, state.metrics.observe_request)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            openapi.complete(super().openapi())
        return super().openapi()


def create_app(
    container: Container,
    authenticator: Authenticator,
    answer_html: AnswerHtml = plain_html,
    error_page: ErrorPage | None = None,
    processes: ServerProcesses | None = None,
    public_address: PublicAddress | None = None,
    find_translation: FindTranslation = keep_english,
    start_answer_process: StartProcess | None = None,
) -> Api:
    """Create the API of a container. It warms up when it starts.

    Args:
        answer_html: renders an answer as sanitized HTML.
        error_page: renders a problem for browsers, outside of the API.
        processes: of this server, where it has several.
        public_address: under which others reach it; None where this machine alone does.
        find_translation: of what people download to read it.
        start_answer_process: starts a process for the turns of conversations, where several people chat at once.
    """
    app = Api(
        title="Quarry",
        version=read_version(),
        description=DESCRIPTION,
        lifespan=_lifespan,
        dependencies=DEPENDENCIES,
        responses=openapi.PROBLEMS,
        generate_unique_id_function=name_operation,
        # The pages of these load scripts from other hosts; and no telemetry leaves the server.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    current = CurrentContainer(container)
    keeper = FileKeeper(lambda: current.container.sources.file_index)
    # Files that a server before this one took and did not read.
    warmup = Warmup(current.parts(), current.reopen_if_switched, keeper.wake)
    server_metrics = Metrics(current, warmup, processes)
    current.observe_web(server_metrics)
    pools = RequestPools.of(
        container.settings,
        server_metrics,
        lambda: current.container.language_models.answers,
    )
    app.state.app_state = AppState(
        current=current,
        warmup=warmup,
        sync_runs=SyncRunRegistry(
            lambda: current.container.sources,
            processes.other_servers if processes else no_other_servers,
        ),
        answer_html=answer_html,
        find_translation=find_translation,
        metrics=server_metrics,
        authenticator=authenticator,
        pools=pools,
        turns=ConversationTurns(
            lambda: current.container.database, pools, server_metrics, start_answer_process
        ),
        files=keeper,
        mcp=HttpTransport(find_mcp_asker, MOST_BYTES),
        public_address=public_address,
    )
    # Around the routes, within the handlers of errors: what it refuses is answered as every other problem is.
    app.router.middleware_stack = AuthenticationMiddleware(
        app.router.middleware_stack, authenticator, app.routes
    )
    problem_details.register(app, error_page)
    app.router.routes.extend(API_ROUTER.routes)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    if unprotected := list(find_unprotected_routes(app.routes)):
        raise ValueError(f"routes without a permission: {', '.join(unprotected)}")
    state: AppState = app.state.app_state
    threads = state.current.container.settings.searches_at_once + SPARE_THREADS
    to_thread.current_default_thread_limiter().total_tokens = threads
    state.turns.start()
    state.warmup.start()
    async with state.mcp.run():
        yield
        state.warmup.stop()
        state.active_requests.close()
    await to_thread.run_sync(state.turns.stop, LAST_STEP)
    await to_thread.run_sync(state.sync_runs.stop, LAST_STEP)
    await to_thread.run_sync(state.files.stop, LAST_STEP)
