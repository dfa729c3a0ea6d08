"""The state that all routes share, and their dependencies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from anyio import to_thread
from fastapi import Depends, Request

from backend.access.readers import resolve_readers
from backend.api.authorization import AskerDependency
from backend.api.metrics_collector import Metrics
from backend.api.problem_details import Problem, problem
from backend.api.request_context import ActiveRequests
from backend.api.server_processes import ServerProcesses
from backend.api.server_sent_events import Streams
from backend.api.sync_runs import SyncRunRegistry
from backend.api.warmup import CurrentContainer, Warmup
from backend.composition.chat import ChatService
from backend.container import Container
from backend.schemas.answer import AnswerResponse
from backend.schemas.system import PartStatus
from backend.search.search_service import SearchService
from backend.sources.service import SourceService
from backend.store.database import Database
from connectors.access import Readers

PATIENCE = 2.0
"""Seconds that a request waits for the server to be ready."""

AnswerHtml: TypeAlias = Callable[[AnswerResponse], str]
"""Renders an answer as sanitized HTML."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    current: CurrentContainer
    warmup: Warmup
    sync_runs: SyncRunRegistry
    answer_html: AnswerHtml
    metrics: Metrics
    processes: ServerProcesses | None = None
    active_requests: ActiveRequests = field(default_factory=ActiveRequests)
    streams: Streams = field(default_factory=Streams)


async def get_app_state(request: Request) -> AppState:
    state: AppState = request.app.state.app_state
    return state


AppStateDependency = Annotated[AppState, Depends(get_app_state)]


async def get_container(state: AppStateDependency) -> Container:
    """Return the container once all of it is ready.

    Raises:
        Problem: 503, it is not ready yet.
    """
    ready = state.warmup.ready
    if ready.is_set() or await to_thread.run_sync(ready.wait, PATIENCE):
        return state.current.container
    states = [f"{part.name}: {part.detail or part.state}" for part in _unready(state)]
    raise Problem(
        problem(503, f"Quarry is not ready yet ({'; '.join(states)}).", "Try again in a moment."),
        {"Retry-After": "2"},
    )


def _unready(state: AppState) -> list[PartStatus]:
    return [part for part in state.warmup.status().parts if part.state != "ready"]


ContainerDependency = Annotated[Container, Depends(get_container)]


async def get_database(container: ContainerDependency) -> Database:
    return container.database


async def get_chat(container: ContainerDependency) -> ChatService:
    return container.chat


async def get_search(container: ContainerDependency) -> SearchService:
    return container.chat.search


DatabaseDependency = Annotated[Database, Depends(get_database)]


def get_readers(asker: AskerDependency, database: DatabaseDependency) -> Readers:
    """Return what the asker may read, resolved once for the request."""
    return resolve_readers(database, asker.readers)


ReadersDependency = Annotated[Readers, Depends(get_readers)]
ChatDependency = Annotated[ChatService, Depends(get_chat)]
SearchDependency = Annotated[SearchService, Depends(get_search)]


async def get_source_service(
    container: ContainerDependency, asker: AskerDependency
) -> SourceService:
    return SourceService.of(container, asker.actor)


SourcesDependency = Annotated[SourceService, Depends(get_source_service)]
