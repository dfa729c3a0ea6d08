"""`quarry mcp`: the documents for an agent on this machine, over standard input and output.

Standard output holds messages of the protocol and nothing else.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

import anyio
from pydantic import BaseModel

from backend.api.answer_events import answer_events, plain_html
from backend.api.answer_streams import follow_watched
from backend.api.server_sent_events import Event, from_thread
from backend.api.started_research import ResearchStarter
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import RightsWatch
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import read_default_settings
from backend.cli import command_line
from backend.cli.command_line import As
from backend.cli.local_research_workers import OWNER, LocalResearchWorkers
from backend.composition.chat import ChatService
from backend.conversations.assistant_service import AssistantUser
from backend.programs.bounded_work import run_bounded
from backend.programs.home_container import HomeContainer
from backend.programs.mcp.asker import DocumentAccess, ResearchNews
from backend.programs.mcp.resources import make_uri
from backend.programs.mcp.server import make_server
from backend.programs.mcp.stdio_transport import serve_stdio
from backend.research.runs.service import OpenedResearch
from backend.schemas.mcp_tool import ResearchArguments
from backend.store import audit
from backend.store.accounts.people import NOBODY
from backend.store.database import Database
from indexing.index.versions import IndexVersionReplacedError
from indexing.runtime.deadline import CancelToken, Deadline

Found = TypeVar("Found")


def mcp(readers: As = None) -> None:
    """Serve the documents to an agent on this machine, by the Model Context Protocol (standard input and output)."""
    own = command_line.readers(readers)
    with command_line.cli_errors(as_json=False):
        home = HomeContainer(command_line.open_home(), own if readers else None)
        research = LocalResearchWorkers(home)
        asker = HomeAsker(home, readers, research)
        # What was begun and is not done ends first: it works with the home.
        with closing(home), closing(research):
            _serve(asker)


def _serve(asker: "HomeAsker") -> None:
    """Serve until the input ends. Raises KeyboardInterrupt."""

    async def serve() -> None:
        asyncio.get_running_loop().set_exception_handler(_report_error)
        await serve_stdio(make_server(lambda _: asker))

    try:
        anyio.run(serve)
    except BaseExceptionGroup as group:
        if not _is_interrupt(group):
            raise
        raise KeyboardInterrupt from None


def _report_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that nothing awaits, unless it is Ctrl-C."""
    if not _is_interrupt(context.get("exception")):
        loop.default_exception_handler(context)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C was raised in a task: it is raised in whatever runs at that moment."""
    in_group = isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt)
    return isinstance(error, KeyboardInterrupt) or bool(in_group)


@dataclass(frozen=True, slots=True)
class HomeAsker:
    """Implements `backend.programs.mcp.asker.McpAsker`, for who runs the command."""

    home: HomeContainer
    tokens: list[str] | None
    """What `--as` names; None for the owner of the machine."""
    runs: LocalResearchWorkers

    @property
    def may_ask(self) -> bool:
        return True

    @property
    def may_research(self) -> bool:
        return True

    def note_query(self, query: str) -> None:
        """Do nothing: there is no log."""

    def find_url(self, document_id: str, link: str, kind: str) -> str:
        del kind
        return link or make_uri(document_id)

    def find_research_url(self, research_id: str) -> str:
        """Return its path: no server need run."""
        return f"/api/research/{research_id}"

    async def read_documents(self, work: Callable[[DocumentAccess], Found]) -> Found:
        deadline = Deadline.after(self.home.settings.search_seconds)
        return await run_bounded(lambda bounded: self._read(work, bounded), deadline)

    def _read(self, work: Callable[[DocumentAccess], Found], deadline: Deadline) -> Found:
        try:
            return work(self._open(deadline))
        except IndexVersionReplacedError:
            self.home.reopen()
            return work(self._open(deadline))

    def _open(self, deadline: Deadline) -> DocumentAccess:
        return DocumentAccess(
            search=self.home.open_search(),
            database=self.home.get().database,
            find_readers=self.home.find_readers,
            find_readers_to_open=self.home.find_readers,
            find_url=self.find_url,
            deadline=deadline,
        )

    async def answer(self, question: str) -> AsyncGenerator[BaseModel, None]:
        with Deadline.after(self.home.settings.answer_seconds).ended_with_block() as deadline:

            def make() -> Generator[Event, None, None]:
                return answer_events(self._answer(question, deadline), question, plain_html)

            async with aclosing(from_thread(make)) as events:
                async for event in events:
                    if isinstance(event, Event):
                        yield event.data

    def _answer(self, question: str, deadline: Deadline) -> Generator[ChatEvent, None, None]:
        self.home.reopen()
        container = self.home.get()
        turn = self._make_turn(container.chat, container.database, question, deadline)
        watch = RightsWatch(
            readers_now=self.home.find_readers,
            index=container.chat.engine.index,
            own_memories=make_own_memories(container.database, turn.owner),
            deadline=deadline,
        )
        yield from follow_watched(watch, container.chat.answer(turn, (), ChatStateContainer()))

    def _make_turn(
        self, chat: ChatService, database: Database, question: str, deadline: Deadline
    ) -> ChatTurn:
        return ChatTurn(
            message=question,
            readers=self.home.find_readers(),
            deadline=deadline,
            person_id=NOBODY,
            # Passages are shown without memories.
            owner=command_line.find_owner(database, self.tokens) if chat.model else None,
            today=date.today(),
            assistant=read_default_settings(database),
        )

    async def research(self, asked: ResearchArguments) -> AsyncGenerator[ResearchNews, None]:
        with ThreadPoolExecutor(1, "followers") as threads:
            starter = await asyncio.to_thread(self._make_starter, threads)
            async with aclosing(starter.start_and_follow(asked, "en")) as news:
                async for one in news:
                    if isinstance(one, OpenedResearch) and one.run.ended_at is None:
                        self.runs.begin(one.run.id)
                    yield one

    def _make_starter(self, threads: Executor) -> ResearchStarter:
        self.home.reopen()
        container = self.home.get()
        return ResearchStarter(
            chat=container.chat,
            database=container.database,
            owner=OWNER,
            assistant_user=AssistantUser(
                owner=OWNER, readers=self.home.find_readers(), is_admin=False, actor=audit.OWNER
            ),
            acting_as=tuple(sorted(command_line.readers(self.tokens).tokens)),
            readers_now=self.home.find_readers,
            news=self.runs.news,
            cancel_token=CancelToken(),
            threads=threads,
        )
