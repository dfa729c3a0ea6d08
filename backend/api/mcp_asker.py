"""Who calls the tools of `/mcp`: the asker of the request, with the rights that it has now."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, TypeVar

from anyio import to_thread
from fastapi import Request
from pydantic import BaseModel

from backend.access.api_tokens import TokenScope
from backend.access.readers import resolve_with_own_files
from backend.access.shared_file_readers import resolve_to_open
from backend.api.answer_events import answer_events, plain_html
from backend.api.answer_streams import AnswerStream, RunTurn
from backend.api.authorization import Asker
from backend.api.dependencies import AppState
from backend.api.languages import find_language
from backend.api.problem_details import Problem
from backend.api.readers_now import make_readers_now
from backend.api.request_context import RequestContext
from backend.api.request_pools import FairPool
from backend.api.server_sent_events import Event, SentEvent, SentEvents
from backend.api.started_research import ResearchStarter
from backend.chat.chat_state import ChatStateContainer
from backend.chat.document_addresses import SourceAddresses
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import read_default_settings
from backend.composition.chat import ChatService
from backend.conversations.assistant_service import AssistantUser
from backend.programs.bounded_work import run_bounded
from backend.programs.mcp.answers import describe_problem
from backend.programs.mcp.asker import DocumentAccess, McpAsker, ResearchNews, ToolError
from backend.schemas.mcp_tool import ResearchArguments
from backend.store.accounts.people import NOBODY
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from indexing.runtime.deadline import Deadline

if TYPE_CHECKING:
    from backend.programs.mcp.server import Context

Found = TypeVar("Found")
_KEY = "quarry.mcp_asker"


def find_mcp_asker(context: "Context") -> McpAsker:
    """Return the asker of the request that a message came with."""
    if context.request is None:
        raise ValueError("the message came without a request")
    asker: HttpAsker = context.request.scope[_KEY]
    return asker


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAsker:
    """Implements `backend.programs.mcp.asker.McpAsker`, for one request."""

    request: Request
    asker: Asker
    chat: ChatService
    database: Database
    state: AppState
    context: RequestContext

    def attach(self) -> None:
        """Let the messages of the request be of this asker."""
        self.request.scope[_KEY] = self

    @property
    def may_ask(self) -> bool:
        return TokenScope.ASK in self.asker.scopes

    @property
    def may_research(self) -> bool:
        """Research belongs to people: who has a token of a service has none."""
        return self.may_ask and self.asker.owner is not None

    def note_query(self, query: str) -> None:
        self.context.query = query

    def find_url(self, document_id: str, link: str, kind: str) -> str:
        return SourceAddresses(self.state.find_server(self.request)).find_by_kind(
            document_id, link, kind
        )

    def find_research_url(self, research_id: str) -> str:
        return f"{self.state.find_server(self.request)}/api/research/{research_id}"

    async def read_documents(self, work: Callable[[DocumentAccess], Found]) -> Found:
        deadline = self.chat.search.deadline(self.context.cancel_token)
        async with self._slot(self.state.pools.searches):
            return await run_bounded(lambda bounded: work(self._open(bounded)), deadline)

    def _open(self, deadline: Deadline) -> DocumentAccess:
        database, own, owner = self.database, self.asker.readers, self.asker.owner
        return DocumentAccess(
            search=self.chat.search,
            database=database,
            find_readers=self._find_readers,
            find_readers_to_open=lambda: resolve_to_open(database, own, owner),
            find_url=self.find_url,
            deadline=deadline,
        )

    def _find_readers(self) -> Readers:
        return resolve_with_own_files(self.database, self.asker.readers, self.asker.owner)

    async def answer(self, question: str) -> AsyncGenerator[BaseModel, None]:
        deadline = Deadline.after(self.chat.seconds, self.context.cancel_token)
        async with self._slot(self.state.pools.answers):
            with deadline.ended_with_block() as bounded:
                begin = await to_thread.run_sync(self._prepare, question, bounded)
                async with aclosing(begin()) as events:
                    async for event in events:
                        if isinstance(event, Event):
                            yield event.data

    def _prepare(self, question: str, deadline: Deadline) -> Callable[[], SentEvents]:
        chat, database, person = self.chat, self.database, self.asker.person
        turn = ChatTurn(
            message=question,
            readers=self._find_readers(),
            deadline=deadline,
            person_id=person.id if person else NOBODY,
            today=date.today(),
            assistant=read_default_settings(database),
        )

        def encode(run: RunTurn) -> Generator[SentEvent, None, None]:
            return answer_events(run(ChatStateContainer()), question, plain_html)

        answers = AnswerStream(self.request, self.state, chat, database)
        return answers.prepare(turn, lambda: chat.choose_models(turn.assistant), self.asker, encode)

    async def research(self, asked: ResearchArguments) -> AsyncGenerator[ResearchNews, None]:
        owner = self.asker.owner
        if owner is None:
            raise ToolError("Research belongs to people: this token belongs to nobody.")
        # Before anything begins: who is refused has begun nothing.
        async with self._slot(self.state.pools.followed_answers):
            starter = self._make_starter(owner)
            language = find_language(self.request)
            async with aclosing(starter.start_and_follow(asked, language)) as news:
                async for one in news:
                    yield one

    def _make_starter(self, owner: ConversationOwner) -> ResearchStarter:
        database = self.database
        return ResearchStarter(
            chat=self.chat,
            database=database,
            owner=owner,
            assistant_user=AssistantUser(
                owner=owner, readers=self._find_readers(), is_admin=False, actor=self.asker.actor
            ),
            acting_as=tuple(sorted(self.asker.readers.tokens)),
            readers_now=make_readers_now(self.request, self.state.authenticator, database),
            news=self.state.turns.news,
            cancel_token=self.context.cancel_token,
            threads=self.state.turns.followers,
        )

    @asynccontextmanager
    async def _slot(self, pool: FairPool) -> AsyncIterator[None]:
        """Hold a slot of a pool. Raises ToolError: too many are before the asker."""
        async with AsyncExitStack() as held:
            try:
                slot = pool.slot(self.asker.turn_key, self.context.cancel_token)
                await held.enter_async_context(slot)
            except Problem as refusal:
                raise ToolError(describe_problem(refusal.problem)) from refusal
            yield
