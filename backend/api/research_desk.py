"""Research as a person asks for it, over the API and on the page: what the request says, and how it begins."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend.api.dependencies import (
    AssistantIdField,
    AssistantsDependency,
    ChatDependency,
    WebSessionsDependency,
)
from backend.api.languages import find_language
from backend.api.request_context import RequestContext, RequestContextDependency
from backend.api.research_dependencies import ResearchDependency
from backend.composition.chat import ChatService
from backend.composition.research import NO_MODEL
from backend.composition.web_search import WebSessions
from backend.conversations.assistant_service import AssistantService
from backend.research.record.budget import MOST_MINUTES, ResearchBudget
from backend.research.record.request import ResearchRequest
from backend.research.runs.service import OpenedResearch, ResearchOrder, ResearchService
from backend.schemas.question import Question
from backend.schemas.search import FiltersBody
from backend.web_search.search import SWITCHED_OFF
from backend.web_search.tool_texts import Language
from connectors.errors import ConflictError


class ResearchBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"question": "How do our parental leave rules compare between countries?"}]
        },
    )

    question: Question
    knowledge: bool = Field(default=True, description="Whether company knowledge is searched")
    web: bool = Field(default=False, description="Whether the web is searched")
    filters: FiltersBody = FiltersBody()
    minutes: Annotated[
        int, Field(ge=1, le=MOST_MINUTES, description="It takes so long at most")
    ] = 10
    confirm: bool = Field(
        default=True,
        description="Whether questions back and the plan wait for you; without it, the research starts at once",
    )
    conversation_id: AssistantIdField | None = Field(
        default=None, description="Your conversation that it goes on from"
    )
    project_id: AssistantIdField | None = Field(
        default=None,
        description="The project whose members see it too; its instructions are followed, and its files are searched",
    )
    assistant_id: AssistantIdField | None = Field(
        default=None,
        description="The assistant whose instructions are followed, and to whose documents the search is limited; a"
        " conversation has its own",
    )

    @model_validator(mode="after")
    def _check_sides(self) -> "ResearchBody":
        if not (self.knowledge or self.web):
            raise ValueError("search company knowledge, the web, or both")
        if self.conversation_id is not None and self.assistant_id is not None:
            raise ValueError("name a conversation, which has its assistant, or an assistant")
        return self

    def make_request(self, language: Language) -> ResearchRequest:
        return ResearchRequest(
            question=self.question,
            uses_documents=self.knowledge,
            uses_web=self.web,
            filters=self.filters.filters(),
            language=language,
            budget=ResearchBudget(seconds=60.0 * self.minutes),
            today=date.today(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchDesk:
    """Begins the research that one request asks for."""

    research: ResearchService
    chat: ChatService
    web_sessions: WebSessions
    assistants: AssistantService
    context: RequestContext
    language: Language

    def begin(self, body: ResearchBody) -> OpenedResearch:
        """Begin a run of who asks.

        Raises:
            ConflictError: the web is switched off, or no language model is set.
            NotFoundError: there is no such conversation, project or assistant, or it is not for the asker.
        """
        self.context.query = body.question
        if body.web and not self.web_sessions.is_on:
            raise ConflictError(SWITCHED_OFF)
        if self.chat.model is None:
            raise ConflictError(NO_MODEL)
        order = ResearchOrder(
            request=body.make_request(self.language),
            confirms_plan=body.confirm,
            conversation_id=body.conversation_id,
            project_id=body.project_id,
            assistant_id=self._find_assistant(body),
        )
        return self.research.begin(order, self.assistants.find_settings_of_conversation)

    def _find_assistant(self, body: ResearchBody) -> str | None:
        """Return None for the default one."""
        if body.assistant_id is None:
            return None
        found = self.assistants.get(body.assistant_id)
        return None if found.is_default else found.id


async def get_research_desk(
    request: Request,
    research: ResearchDependency,
    chat: ChatDependency,
    web_sessions: WebSessionsDependency,
    assistants: AssistantsDependency,
    context: RequestContextDependency,
) -> ResearchDesk:
    return ResearchDesk(
        research=research,
        chat=chat,
        web_sessions=web_sessions,
        assistants=assistants,
        context=context,
        language=find_language(request),
    )


ResearchDeskDependency = Annotated[ResearchDesk, Depends(get_research_desk)]
