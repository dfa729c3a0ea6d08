"""Research that a program has begun, and that it follows in the same call."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

from backend.api.followed_answer import follow_events
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import AskerGoneError, ReadersNow
from backend.composition.chat import ChatService
from backend.composition.research import NO_MODEL
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.assistant_service import AssistantService, AssistantUser
from backend.conversations.name_lookup import find_assistant, find_project
from backend.conversations.project_service import ProjectService
from backend.conversations.turn_notifications import TurnNotifications
from backend.programs.mcp.asker import ResearchNews
from backend.research.record.budget import ResearchBudget
from backend.research.record.request import ResearchRequest
from backend.research.runs.followed_research import ResearchFollower
from backend.research.runs.service import OpenedResearch, ResearchOrder, ResearchService
from backend.schemas.mcp_tool import ResearchArguments
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.web_search.tool_texts import Language
from connectors.errors import ConflictError
from indexing.index.protocols import Filters
from indexing.runtime.deadline import CancelToken, Deadline

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchStarter:
    """Begins research of one asker, and follows it by what they may read at each moment."""

    chat: ChatService
    database: Database
    owner: ConversationOwner
    assistant_user: AssistantUser
    acting_as: tuple[str, ...]
    """As in `ResearchService`."""
    readers_now: ReadersNow
    news: TurnNotifications
    cancel_token: CancelToken
    """Cancelled when the caller is gone."""
    threads: Executor
    """In which it looks at the run."""

    async def start_and_follow(
        self, asked: ResearchArguments, language: Language
    ) -> AsyncGenerator[ResearchNews, None]:
        """Start research, and yield its news as `McpAsker.research` does."""
        begun = await self._in_thread(lambda: self._begin(asked, language))
        yield begun
        follower = self._make_follower(begun.run.id)
        async with aclosing(follow_events(follower, 0, self.threads)) as events:
            async for event in events:
                yield event
        yield await self._in_thread(lambda: self._open_service().open(begun.run.id))

    async def _in_thread(self, work: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    def _begin(self, asked: ResearchArguments, language: Language) -> OpenedResearch:
        """Begin research. Raises NotFoundError: there is no such assistant or project, or it is not for the asker."""
        if self.chat.model is None:
            raise ConflictError(NO_MODEL)
        assistants = self._open_assistants()
        order = replace(
            make_research_order(asked, language),
            assistant_id=find_assistant(assistants, asked.assistant),
            project_id=find_project(self._open_projects(), asked.project),
        )
        return self._open_service().begin(order, assistants.find_settings_of_conversation)

    def _open_projects(self) -> ProjectService:
        return ProjectService(database=self.database, owner=self.owner)

    def _open_assistants(self) -> AssistantService:
        def find_sources() -> frozenset[str]:
            deadline = Deadline.after(self.chat.settings.search_seconds, self.cancel_token)
            readers = self.assistant_user.readers
            return frozenset(self.chat.engine.index.facets(Filters(), readers, deadline).sources)

        return AssistantService(
            database=self.database, user=self.assistant_user, find_sources=find_sources
        )

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
