"""JSON of conversations and their messages."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import JsonValue

from backend.chat.turn_settings import ModeName
from backend.schemas.answer import AnswerDoneEvent, AnswerResponse
from backend.schemas.base import Schema, with_example
from backend.schemas.file import FileResponse
from backend.schemas.search import FiltersBody, StepFailedEvent
from backend.schemas.system import ProblemDetails
from backend.store.chat.assistants import DEFAULT_ID

if TYPE_CHECKING:
    from backend.store.chat.conversations import Conversation

_CONVERSATION: dict[str, JsonValue] = {
    "id": "kD3vT0cWqXe2mYbR9sLhGg",
    "title": "How long is parental leave?",
    "title_by": "words",
    "created_at": "2026-03-02T09:30:00Z",
    "updated_at": "2026-03-02T09:30:00Z",
    "archived": False,
    "assistant_id": "default",
    "project_id": None,
    "running": True,
}
_QUESTION: dict[str, JsonValue] = {
    "id": 1,
    "parent_id": None,
    "role": "user",
    "text": "How long is parental leave?",
    "created_at": "2026-03-02T09:30:00Z",
    "status": None,
    "answer": None,
    "html": None,
    "withheld": False,
    "notice": None,
    "problem": None,
    "siblings": [1],
    "filters": {},
    "summary": None,
    "losses": [],
    "files": [],
    "search_scope": "files",
    "mode": "chat",
    "knowledge": True,
    "web": False,
    "rewrite": True,
}
_RUNNING: dict[str, JsonValue] = {
    **_QUESTION,
    "id": 2,
    "parent_id": 1,
    "role": "assistant",
    "text": "",
    "status": "running",
    "siblings": [2],
    "filters": None,
    "search_scope": None,
    "mode": None,
    "knowledge": None,
    "web": None,
    "rewrite": None,
}
_DONE = AnswerDoneEvent.example()
_FINISHED: dict[str, JsonValue] = {
    **_RUNNING,
    "text": _DONE.answer.answer,
    "status": "finished",
    "answer": _DONE.answer.model_dump(mode="json"),
    "html": _DONE.html,
}


class ConversationResponse(Schema):
    model_config = with_example(**_CONVERSATION)

    id: str
    title: str
    title_by: Literal["words", "model", "person"]
    """`words`: the first ones of its first question."""
    created_at: datetime
    updated_at: datetime
    """When its last question was asked."""
    archived: bool
    assistant_id: str
    """Which assistant answers; `default` is the one that is always there. It may not be available any more."""
    project_id: str | None
    running: bool
    """Whether an answer of it is being written."""

    @classmethod
    def from_conversation(cls, conversation: "Conversation") -> Self:
        return cls(
            id=conversation.id,
            title=conversation.title,
            title_by=conversation.title_by,
            created_at=conversation.created_at,
            updated_at=conversation.updated_at,
            archived=conversation.archived_at is not None,
            assistant_id=conversation.assistant_id or DEFAULT_ID,
            project_id=conversation.project_id,
            running=conversation.running,
        )


class ConversationsResponse(Schema):
    model_config = with_example(conversations=[_CONVERSATION], next=None)

    conversations: tuple[ConversationResponse, ...]
    """The last used one first."""
    next: str | None
    """Given as `before`, it returns the following ones; null at the end."""
    has_archived_matches: bool = False
    """Whether the query also finds conversations in the archive; said on the first page of those that are not in it."""


class MessageResponse(Schema):
    model_config = with_example(**_RUNNING)

    id: int
    parent_id: int | None
    """The message that it follows; null for a first question."""
    role: Literal["user", "assistant"]
    text: str
    """Of an answer: Markdown, citations as `[[1]](link)`. Nothing while it is being written: its events hold it."""
    created_at: datetime
    status: Literal["running", "finished", "stopped", "failed", "interrupted"] | None
    """Null for a question."""
    answer: AnswerResponse | None
    """Of an answer that is finished; of one that is not complete, what was said, where it cites something."""
    html: str | None
    """The text of an answer, rendered and sanitized."""
    withheld: bool
    """Whether the answer rests on a document that you may not read now. Nothing of it is returned then."""
    notice: str | None
    """What to say to the asker of an answer that is withheld, was stopped or was interrupted."""
    problem: ProblemDetails | None
    """Why the answer failed."""
    siblings: tuple[int, ...]
    """The messages in its place, itself included, in the order in which they were made."""
    filters: FiltersBody | None
    """What a question is narrowed to."""
    summary: str | None
    """What the language model is given from now on in place of the messages down to this one."""
    losses: tuple[StepFailedEvent, ...]
    """Steps that the answer was written without, such as `history`: its model was given nothing of the earliest messages."""
    files: tuple[FileResponse, ...]
    """That came with a question."""
    deleted_files: int = 0
    """How many files came with it besides, which were deleted since."""
    search_scope: Literal["files", "everything"] | None
    """Of a question: what is searched where its files are too long to be read whole; null for an answer."""
    mode: ModeName | None = None
    """Of a question: the mode in which it is answered; null for an answer, as the switches."""
    knowledge: bool | None = None
    """Whether company knowledge is searched; null in Agent mode, as the other switches."""
    web: bool | None = None
    rewrite: bool | None = None


class MessagePlaceResponse(Schema):
    id: int
    parent_id: int | None
    """Those of one parent are versions of each other; null for first questions."""


class OpenedConversationResponse(Schema):
    model_config = with_example(
        conversation={**_CONVERSATION, "running": False},
        messages=[_QUESTION, _FINISHED],
        earlier=None,
        newer=[],
    )

    conversation: ConversationResponse
    messages: tuple[MessageResponse, ...]
    """Questions and answers of one path through the tree, in their order."""
    earlier: int | None
    """Given as `before`, it returns those that stand before these; null at the beginning."""
    newer: tuple[MessagePlaceResponse, ...] = ()
    """Where `known` is given: all messages that were made after it, also those of other paths."""


class QuestionBegunResponse(Schema):
    model_config = with_example(conversation=_CONVERSATION, question=_QUESTION, answer=_RUNNING)

    conversation: ConversationResponse
    question: MessageResponse
    answer: MessageResponse


class AnswerBegunResponse(Schema):
    model_config = with_example(answer=_RUNNING)

    answer: MessageResponse


class TurnEndedEvent(Schema):
    """The events `stopped` and `interrupted`."""

    model_config = with_example(detail="The answer was stopped.")

    detail: str


def read_answer(question: str, answer: Mapping[str, Any]) -> AnswerResponse:
    """Read an answer that was stored without its question."""
    return AnswerResponse.model_validate({**answer, "question": question})
