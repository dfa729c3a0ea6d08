"""What all routes share, and how they come by it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from anyio import to_thread
from fastapi import Depends, Request

from backend.api.metrics_collector import Metrics
from backend.api.problem_details import Problem, problem
from backend.api.request_context import Visits
from backend.api.server_sent_events import Streams
from backend.api.sync_runs import Syncs
from backend.api.warmup import Readiness, Served
from backend.composition.chat import ChatService
from backend.container import Container
from backend.schemas.answer import AnswerResponse
from backend.schemas.system import PartStatus
from backend.search.service import SearchService
from backend.sources.service import SourceService
from backend.store.database import Database

PATIENCE = 2.0
"""Seconds that a request waits for the server to be ready."""

AnswerHtml: TypeAlias = Callable[[AnswerResponse], str]
"""An answer as people read it: rendered, cleaned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    served: Served
    readiness: Readiness
    syncs: Syncs
    answer_html: AnswerHtml
    metrics: Metrics
    visits: Visits = field(default_factory=Visits)
    streams: Streams = field(default_factory=Streams)


async def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


PartsIs = Annotated[Parts, Depends(parts_of)]


async def ready_container(parts: PartsIs) -> Container:
    """Quarry, once all of it is ready."""
    if parts.readiness.wait(0) or await to_thread.run_sync(parts.readiness.wait, PATIENCE):
        return parts.served.container
    states = [f"{part.name}: {part.detail or part.state}" for part in _unready(parts)]
    raise Problem(
        problem(503, f"Quarry is not ready yet ({'; '.join(states)}).", "Try again in a moment."),
        {"Retry-After": "2"},
    )


def _unready(parts: Parts) -> list[PartStatus]:
    return [part for part in parts.readiness.status().parts if part.state != "ready"]


ContainerIs = Annotated[Container, Depends(ready_container)]


async def get_database(container: ContainerIs) -> Database:
    return container.database


async def get_chat(container: ContainerIs) -> ChatService:
    return container.chat


async def get_search(container: ContainerIs) -> SearchService:
    return container.chat.search


DatabaseIs = Annotated[Database, Depends(get_database)]
ChatIs = Annotated[ChatService, Depends(get_chat)]
SearchIs = Annotated[SearchService, Depends(get_search)]


async def source_service(container: ContainerIs) -> SourceService:
    return SourceService.of(container)


SourcesIs = Annotated[SourceService, Depends(source_service)]
