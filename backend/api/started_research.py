"""Research that a program has begun, and that it follows in the same call."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from backend.api.followed_answer import follow_events
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import AskerGoneError, ReadersNow
from backend.composition.chat import ChatService
from backend.composition.research import NO_MODEL
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.turn_news import TurnNews
from backend.programs.mcp.asker import ResearchNews
from backend.research.record.budget import ResearchBudget
from backend.research.record.request import ResearchRequest
from backend.research.runs.followed_research import ResearchFollower
from backend.research.runs.service import OpenedResearch, ResearchOrder, ResearchService
from backend.schemas.mcp_tool import ResearchArguments
from backend.store.conversations import ConversationOwner
from backend.store.database import Database
from backend.web_search.tool_texts import Language
from connectors.errors import ConflictError
from indexing.runtime.deadline import CancelToken, Deadline

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchStarter:
    """Begins research of one asker, and follows it by what they may read at each moment."""

    chat: ChatService
    database: Database
    owner: ConversationOwner
    acting_as: tuple[str, ...]
    """As in `ResearchService`."""
    readers_now: ReadersNow
    news: TurnNews
    cancel_token: CancelToken
    """Cancelled when the caller is gone."""
    threads: Executor
    """In which it looks at the run."""

    async def start_and_follow(self, order: ResearchOrder) -> AsyncGenerator[ResearchNews, None]:
        """As `McpAsker.research`."""
        begun = await self._in_thread(lambda: self._begin(order))
        yield begun
        follower = self._make_follower(begun.run.id)
        async with aclosing(follow_events(follower, 0, self.threads)) as events:
            async for event in events:
                yield event
        yield await self._in_thread(lambda: self._open_service().open(begun.run.id))

    async def _in_thread(self, work: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    def _begin(self, order: ResearchOrder) -> OpenedResearch:
        if self.chat.model is None:
            raise ConflictError(NO_MODEL)
        # It is asked of the default assistant, which is for everybody.
        return self._open_service().begin(order, lambda _: None)

    def _open_service(self) -> ResearchService:
        readers = self.readers_now()
        if readers is None:
            raise AskerGoneError
        gate = AnswerGate(
            index=self.chat.engine.index,
            readers=readers,
            own_memories=make_own_memories(self.database, self.owner),
            deadline=Deadline.after(self.chat.settings.search_seconds, self.cancel_token),
        )
        return ResearchService(
            database=self.database, owner=self.owner, gate=gate, acting_as=self.acting_as
        )

    def _make_follower(self, research_id: str) -> ResearchFollower:
        return ResearchFollower(
            database=self.database,
            run_id=research_id,
            owner=self.owner,
            index=self.chat.engine.index,
            readers_now=self.readers_now,
            own_memories=make_own_memories(self.database, self.owner),
            seconds=self.chat.settings.search_seconds,
            news=self.news,
            cancel_token=self.cancel_token,
        )


def make_research_order(asked: ResearchArguments, language: Language) -> ResearchOrder:
    """Return what an agent wants researched, by documents alone: nothing is asked back, and no plan waits."""
    request = ResearchRequest(
        question=asked.question,
        language=language,
        budget=ResearchBudget(seconds=60.0 * asked.minutes),
        today=date.today(),
    )
    return ResearchOrder(request=request, confirms_plan=False)
