"""The state that all routes share, and their dependencies."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from anyio import to_thread
from fastapi import Depends, Path, Request
from pydantic import Field

from backend.access.api_tokens import TokenScope
from backend.access.document_readers import AllReaders, FindReaders, OwnReaders
from backend.access.readers import resolve_with_own_files
from backend.access.roles import Role
from backend.access.shared_file_readers import resolve_to_open
from backend.api.answer_events import AnswerHtml
from backend.api.authentication import Authenticator
from backend.api.authorization import (
    Asker,
    AskerDependency,
    Endpoint,
    Permission,
    get_asker,
    get_permission,
)
from backend.api.conversation_turns import ConversationTurns
from backend.api.metrics_collector import Metrics
from backend.api.problem_details import Problem, problem
from backend.api.public_address import PublicAddress
from backend.api.request_context import (
    ActiveRequests,
    RequestContextDependency,
    get_request_context,
)
from backend.api.request_pools import RequestPools
from backend.api.sync_runs import SyncRunRegistry
from backend.api.translations import FindTranslation
from backend.api.warmup import CurrentContainer, Warmup
from backend.chat.llm.stored_models import ModelService
from backend.composition.chat import ChatService
from backend.composition.language_models import LanguageModels
from backend.composition.web_search import WebSessions
from backend.container import Container
from backend.conversations.assistant_service import AssistantService, AssistantUser
from backend.files.file_keeper import FileKeeper
from backend.programs.mcp.http_transport import HttpTransport
from backend.schemas.system import PartStatus
from backend.search.search_service import SearchService
from backend.sources.document_sets import DocumentSetService
from backend.sources.service import SourceService
from backend.store.accounts.people import NOBODY
from backend.store.database import Database
from backend.store.sync.sources import EVERY_SOURCE, SourceChoice, SourcesOf
from backend.web_search.service import WebSearchService
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline

PATIENCE = 2.0
"""Seconds that a request waits for the server to be ready."""

_LONGEST_ASSISTANT_ID = 100
AssistantId: TypeAlias = Annotated[str, Path(max_length=_LONGEST_ASSISTANT_ID)]
AssistantIdField: TypeAlias = Annotated[str, Field(max_length=_LONGEST_ASSISTANT_ID)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    current: CurrentContainer
    warmup: Warmup
    sync_runs: SyncRunRegistry
    answer_html: AnswerHtml
    find_translation: FindTranslation
    metrics: Metrics
    pools: RequestPools
    turns: ConversationTurns
    files: FileKeeper
    mcp: HttpTransport
    authenticator: Authenticator
    public_address: PublicAddress | None = None
    active_requests: ActiveRequests = field(default_factory=ActiveRequests)

    def find_server(self, request: Request) -> str:
        """Return the address of this server, without a path; the one that the client used where others reach it by none."""
        address = self.public_address
        return (str(request.base_url) if address is None else address.url).removesuffix("/")


# FastAPI solves the dependencies of a dependency before it looks whether that has been solved already, which takes as long as
# a small query for each of them: what is part of the state is read from the request.
def read_app_state(request: Request) -> AppState:
    state: AppState = request.app.state.app_state
    return state


async def get_app_state(request: Request) -> AppState:
    return read_app_state(request)


AppStateDependency = Annotated[AppState, Depends(get_app_state)]


_WITHOUT_TURN = {Permission.ANYONE, Permission.METRICS}
"""Probes and scrapes are answered however busy the server is."""


_AMONG_ANSWERS = "_quarry_waits_among_answers"


def waits_among_answers(endpoint: Endpoint) -> Endpoint:
    """Let the function of a route have a slot of the pool of answers: it takes as long as they do, and searches must not wait for it."""
    setattr(endpoint, _AMONG_ANSWERS, True)
    return endpoint


_TAKES_TURNS_ITSELF = "_quarry_takes_turns_itself"


def takes_turns_itself(endpoint: Endpoint) -> Endpoint:
    """Let the function of a route have no slot: it waits for nothing, and what it answers with takes those that it needs."""
    setattr(endpoint, _TAKES_TURNS_ITSELF, True)
    return endpoint


async def take_turn(request: Request) -> AsyncIterator[None]:
    """Hold a slot while the function of the route runs: of the pool of searches, unless it waits among the answers, or takes its
    turns itself."""
    endpoint = request.scope.get("endpoint")
    if get_permission(endpoint) in _WITHOUT_TURN or hasattr(endpoint, _TAKES_TURNS_ITSELF):
        yield
        return
    asker, context = await get_asker(request), get_request_context(request.scope)
    state, takes_long = read_app_state(request), hasattr(endpoint, _AMONG_ANSWERS)
    pool = state.pools.answers if takes_long else state.pools.searches
    async with pool.slot(asker.turn_key, context.cancel_token):
        yield


_CONTAINER = "quarry.container"


async def get_container(request: Request) -> Container:
    """Return the container once all of it is ready.

    Raises:
        Problem: 503, it is not ready yet.
    """
    # One for all of the request, also where the index is switched to another version meanwhile.
    container: Container | None = request.scope.get(_CONTAINER)
    if container is not None:
        return container
    state = read_app_state(request)
    ready = state.warmup.ready
    if ready.is_set() or await to_thread.run_sync(ready.wait, PATIENCE):
        request.scope[_CONTAINER] = container = state.current.container
        return container
    states = [f"{part.name}: {part.detail or part.state}" for part in _unready(state)]
    raise Problem(
        problem(503, f"Quarry is not ready yet ({'; '.join(states)}).", "Try again in a moment."),
        {"Retry-After": "2"},
    )


def _unready(state: AppState) -> list[PartStatus]:
    return [part for part in state.warmup.status().parts if part.state != "ready"]


ContainerDependency = Annotated[Container, Depends(get_container)]


async def get_database(request: Request) -> Database:
    return (await get_container(request)).database


async def get_chat(request: Request) -> ChatService:
    return (await get_container(request)).chat


async def get_web_sessions(request: Request) -> WebSessions:
    return (await get_container(request)).web.sessions


async def get_search(request: Request) -> SearchService:
    return (await get_chat(request)).search


DatabaseDependency = Annotated[Database, Depends(get_database)]


async def get_account_database(request: Request) -> Database:
    """Return the database, also while the index is not ready: accounts do not need it."""
    return read_app_state(request).current.container.database


AccountDatabaseDependency = Annotated[Database, Depends(get_account_database)]


async def get_model_service(state: AppStateDependency, asker: AskerDependency) -> ModelService:
    """Return what changes the language models, also while the server is not ready: one may be why."""
    return state.current.container.model_service(asker.actor)


async def get_language_models(request: Request) -> LanguageModels:
    return read_app_state(request).current.container.language_models


async def get_web_search_service(
    state: AppStateDependency, asker: AskerDependency
) -> WebSearchService:
    """Return what admins do to web search, also while the index is not ready: it does not need it."""
    return state.current.container.web.service(asker.actor)


WebSearchServiceDependency = Annotated[WebSearchService, Depends(get_web_search_service)]
ModelServiceDependency = Annotated[ModelService, Depends(get_model_service)]
LanguageModelsDependency = Annotated[LanguageModels, Depends(get_language_models)]


def get_readers(asker: AskerDependency, database: DatabaseDependency) -> Readers:
    """Return what the asker may read, resolved once for the request."""
    return resolve_with_own_files(database, asker.readers, asker.owner)


def get_readers_to_open(asker: AskerDependency, database: DatabaseDependency) -> Readers:
    """Return what the asker may read of what they name or were given: with the files of their projects and assistants,
    which no search of theirs finds."""
    return resolve_to_open(database, asker.readers, asker.owner)


def get_find_readers(
    asker: AskerDependency,
    database: DatabaseDependency,
    readers: Annotated[Readers, Depends(get_readers_to_open)],
) -> FindReaders:
    """Return how to find the readers of a document: all of them for an admin, for others only themselves."""
    if asker.role is Role.ADMIN and TokenScope.ADMIN in asker.scopes:
        return AllReaders(database)
    return OwnReaders(database, asker.readers, readers)


FindReadersDependency = Annotated[FindReaders, Depends(get_find_readers)]
ReadersDependency = Annotated[Readers, Depends(get_readers)]
OpeningReadersDependency = Annotated[Readers, Depends(get_readers_to_open)]
ChatDependency = Annotated[ChatService, Depends(get_chat)]
WebSessionsDependency = Annotated[WebSessions, Depends(get_web_sessions)]
SearchDependency = Annotated[SearchService, Depends(get_search)]


def choose_sources(asker: Asker) -> SourceChoice:
    """Return the sources that exist for an asker."""
    if asker.role is Role.ADMIN:
        return EVERY_SOURCE
    return SourcesOf(asker.person.id if asker.person else NOBODY)


async def get_source_service(
    container: ContainerDependency, asker: AskerDependency
) -> SourceService:
    return SourceService.of(container.sources, asker.actor, choose_sources(asker))


async def get_set_service(state: AppStateDependency, asker: AskerDependency) -> DocumentSetService:
    """Return the service, also while the index is not ready: only to count documents takes that."""
    container = state.current.container
    return DocumentSetService(
        container.database, container.engine.count_selected, asker.actor, choose_sources(asker)
    )


SetsDependency = Annotated[DocumentSetService, Depends(get_set_service)]
SourcesDependency = Annotated[SourceService, Depends(get_source_service)]


async def get_assistants(
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    context: RequestContextDependency,
) -> AssistantService:
    """Return the assistants of the asker."""

    def find_sources() -> frozenset[str]:
        deadline = Deadline.after(chat.settings.search_seconds, context.cancel_token)
        return frozenset(chat.engine.index.facets(Filters(), readers, deadline).sources)

    user = AssistantUser(
        owner=asker.owner,
        readers=asker.readers,
        is_admin=asker.role is Role.ADMIN and TokenScope.ADMIN in asker.scopes,
        actor=asker.actor,
    )
    return AssistantService(database=database, user=user, find_sources=find_sources)


AssistantsDependency = Annotated[AssistantService, Depends(get_assistants)]
