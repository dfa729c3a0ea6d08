"""`quarry mcp`: the documents for an agent on this machine, over standard input and output.

Standard output holds messages of the protocol and nothing else.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

import anyio
from pydantic import BaseModel

from backend.api.answer_events import answer_events, plain_html
from backend.api.answer_streams import follow_watched
from backend.api.server_sent_events import Event, from_thread
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import RightsWatch
from backend.chat.turn import ChatTurn
from backend.cli import command_line
from backend.cli.command_line import As
from backend.container import Container
from backend.conversations.assistant_service import read_default_settings
from backend.programs.bounded_work import run_bounded
from backend.programs.home_container import HomeContainer
from backend.programs.mcp.asker import DocumentAccess
from backend.programs.mcp.resources import make_uri
from backend.programs.mcp.server import make_server
from backend.programs.mcp.transports import serve_stdio
from backend.store.people import NOBODY
from indexing.index.versions import IndexVersionReplacedError
from indexing.runtime.deadline import Deadline

Found = TypeVar("Found")


def mcp(readers: As = None) -> None:
    """Serve the documents to an agent on this machine, until it closes standard input."""
    own = command_line.readers(readers)
    with command_line.cli_errors(as_json=False):
        home = HomeContainer(command_line.open_home(), own if readers else None)
        asker = HomeAsker(home, readers)
        with closing(home):
            anyio.run(serve_stdio, make_server(lambda _: asker))


@dataclass(frozen=True, slots=True)
class HomeAsker:
    """Implements `backend.programs.mcp.asker.McpAsker`, for who runs the command."""

    home: HomeContainer
    tokens: list[str] | None
    """What `--as` names; None for the owner of the machine."""

    @property
    def may_ask(self) -> bool:
        return True

    def note_query(self, query: str) -> None:
        """There is no log."""

    def find_url(self, document_id: str, link: str, kind: str) -> str:
        del kind
        return link or make_uri(document_id)

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
        turn = self._make_turn(container, question, deadline)
        watch = RightsWatch(
            readers_now=self.home.find_readers,
            index=container.chat.engine.index,
            own_memories=make_own_memories(container.database, turn.owner),
            deadline=deadline,
        )
        yield from follow_watched(watch, container.chat.answer(turn, (), ChatStateContainer()))

    def _make_turn(self, container: Container, question: str, deadline: Deadline) -> ChatTurn:
        return ChatTurn(
            message=question,
            readers=self.home.find_readers(),
            deadline=deadline,
            person_id=NOBODY,
            # Passages are shown without memories.
            owner=command_line.find_owner(container, self.tokens) if container.chat.model else None,
            today=date.today(),
            assistant=read_default_settings(container.database),
        )
