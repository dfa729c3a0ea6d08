"""`/api/conversations`: ask in conversations that last, and follow their answers from wherever they are."""

from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import Response

from backend.api import conversation_responses as responses
from backend.api import openapi
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import (
    FOLLOWING,
    HIGHEST,
    ConversationId,
    ConversationsDependency,
    FirstEventDependency,
    FollowerDependency,
    MessageId,
)
from backend.api.dependencies import AppStateDependency, AssistantIdField, WebSessionsDependency
from backend.api.followed_answer import open_stream
from backend.api.request_context import RequestContextDependency
from backend.api.routes.ask import MODE_CONFLICT
from backend.api.server_sent_events import EventStream
from backend.composition.web_search import WebSessions
from backend.conversations.service import ConversationService
from backend.conversations.titles import remove_controls
from backend.files.file_types import MOST_OF_QUESTION
from backend.schemas.conversation import (
    AnswerBegunResponse,
    ConversationResponse,
    ConversationsResponse,
    OpenedConversationResponse,
    QuestionBegunResponse,
)
from backend.schemas.question import Question
from backend.schemas.search import FiltersBody
from backend.schemas.turn_mode import ModeBody, dump_mode
from backend.store.chat.assistants import DEFAULT_ID
from backend.store.chat.new_messages import NewQuestion
from indexing.text.normalization import INVISIBLE, is_visible

router = APIRouter()
MOST_CONVERSATIONS = 200
MOST_MESSAGES = 200
LONGEST_TITLE = 200
_LONGEST_QUERY = 1_000
_ONE = "/api/conversations/{conversation_id}"
_MESSAGE = f"{_ONE}/messages/{{message_id}}"
_CONFLICT = openapi.describe_problem("Too much is being answered in this conversation already")
_MODE_CONFLICT = openapi.describe_problem(
    "Too much is being answered in this conversation already, a switch is set in Agent mode, or the web is switched off"
)

MessageIdField: TypeAlias = Annotated[int, Field(ge=1, le=HIGHEST)]


def _check_title(title: str) -> str:
    if not is_visible(title):
        raise ValueError("write a title, with visible characters")
    return remove_controls(title)


class QuestionBody(ModeBody):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"question": "How long is parental leave?"}]},
    )

    question: Question
    filters: FiltersBody = FiltersBody()
    files: tuple[Annotated[str, Field(max_length=100)], ...] = Field(
        default=(), max_length=MOST_OF_QUESTION, description="Ids of your files: see /api/files"
    )
    search_scope: Literal["files", "everything"] = Field(
        default="files",
        description="What is searched where the files are too long to be read whole",
    )

    def read(self, web_sessions: WebSessions) -> NewQuestion:
        """Return the question.

        Raises:
            ConflictError: its mode contradicts itself, or asks for the web, which is switched off.
        """
        mode = self.read_permitted_mode(lambda: web_sessions.is_on)
        filters = self.filters.model_dump(mode="json", exclude_none=True)
        return NewQuestion(
            text=self.question,
            filters=filters,
            files=self.files,
            search_scope=self.search_scope,
            mode=dump_mode(mode),
        )


class FirstQuestionBody(QuestionBody):
    assistant_id: AssistantIdField = Field(
        default=DEFAULT_ID, description="Which assistant answers"
    )

    project_id: AssistantIdField | None = Field(
        default=None, description="The project that the conversation belongs to"
    )


class FollowUpBody(QuestionBody):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"question": "And for adoptions?", "parent_id": 2}]},
    )

    parent_id: MessageIdField | None = Field(
        description="The answer that it follows; null to ask the first question anew"
    )


class ConversationBody(BaseModel):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"title": "Parental leave", "archived": False}]},
    )

    title: (
        Annotated[
            str,
            Field(max_length=LONGEST_TITLE, json_schema_extra={"pattern": rf"[^{INVISIBLE}]"}),
            AfterValidator(_check_title),
        ]
        | None
    ) = None
    archived: bool | None = None
    assistant_id: AssistantIdField | None = Field(
        default=None, description="Which assistant answers from the next question on"
    )
    leaf_id: MessageIdField | None = Field(
        default=None, description="A message: the path through it is shown from now on"
    )


@router.get("/api/conversations", summary="List your conversations")
@requires(Permission.ASK)
def list_conversations(
    conversations: ConversationsDependency,
    archived: Annotated[bool, Query(description="Those in the archive")] = False,  # noqa: FBT002 (a query parameter)
    limit: Annotated[int, Query(ge=1, le=MOST_CONVERSATIONS)] = 50,
    before: Annotated[
        str | None, Query(max_length=200, description="What `next` of the page before says")
    ] = None,
    query: Annotated[str, Query(max_length=_LONGEST_QUERY)] = "",
) -> ConversationsResponse:
    """The last used one first. A query finds conversations in which each of its words, and each phrase in quotation marks, stands in the
    title, in a question or in an answer. Answers are searched in the 2,000 conversations that were used last; one that rests on a document that you may not read now
    is not found. 503 where the index, which says that, does not answer."""
    position = responses.find_position(before)
    found = conversations.list_page("archived" if archived else "active", query, position, limit)
    return responses.make_page(found)


@router.post(
    "/api/conversations",
    status_code=202,
    responses={409: MODE_CONFLICT},
    summary="Begin a conversation with a question",
)
@requires(Permission.ASK)
def begin_conversation(
    body: FirstQuestionBody,
    conversations: ConversationsDependency,
    web_sessions: WebSessionsDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> QuestionBegunResponse:
    """The answer is written whether anybody follows it or not; its events are at .../messages/{id}/events."""
    context.query = body.question
    begun = conversations.begin(body.read(web_sessions), body.assistant_id, body.project_id)
    return responses.make_begun(begun, state.answer_html)


@router.get(_ONE, summary="Return a conversation with the messages of one path through it")
@requires(Permission.ASK)
def open_conversation(
    conversation_id: ConversationId,
    conversations: ConversationsDependency,
    state: AppStateDependency,
    leaf: Annotated[
        int | None,
        Query(ge=1, le=HIGHEST, description="A message: the path through it, to the newest below"),
    ] = None,
    before: Annotated[
        int | None, Query(ge=1, le=HIGHEST, description="Only what stands before this message")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_MESSAGES)] = 50,
    known: Annotated[
        int | None,
        Query(
            ge=1,
            le=HIGHEST,
            description="The newest message that you have: `newer` lists those made since",
        ),
    ] = None,
) -> OpenedConversationResponse:
    """The last messages of the path, in their order. An answer that rests on a document that you may not read now is withheld."""
    opened = conversations.open(conversation_id, leaf, before, limit)
    newer = () if known is None else conversations.list_newer(conversation_id, known)
    return responses.make_opened(opened, state.answer_html, newer)


@router.patch(_ONE, summary="Rename a conversation, archive it, or choose the path that is shown")
@requires(Permission.ASK)
def change_conversation(
    conversation_id: ConversationId, body: ConversationBody, conversations: ConversationsDependency
) -> ConversationResponse:
    if body.assistant_id is not None:
        conversations.check_assistant(body.assistant_id)
    with conversations.in_one_transaction() as changing:
        _change(changing, conversation_id, body)
    return ConversationResponse.from_conversation(conversations.get(conversation_id))


def _change(
    conversations: ConversationService, conversation_id: str, body: ConversationBody
) -> None:
    if body.leaf_id is not None:
        conversations.show_leaf(conversation_id, body.leaf_id)
    if body.assistant_id is not None:
        conversations.set_assistant(conversation_id, body.assistant_id)
    if body.title is not None:
        conversations.set_title(conversation_id, body.title)
    match body.archived:
        case True:
            conversations.archive(conversation_id)
        case False:
            conversations.restore(conversation_id)
        case None:
            pass


@router.delete(_ONE, status_code=204, summary="Delete a conversation with all its messages")
@requires(Permission.ASK)
def delete_conversation(
    conversation_id: ConversationId, conversations: ConversationsDependency
) -> None:
    """Answers that are being written are stopped."""
    conversations.delete(conversation_id)


@router.post(
    f"{_ONE}/messages",
    status_code=202,
    responses={409: _MODE_CONFLICT},
    summary="Ask in a conversation",
)
@requires(Permission.ASK)
def ask_in_conversation(
    conversation_id: ConversationId,
    body: FollowUpBody,
    conversations: ConversationsDependency,
    web_sessions: WebSessionsDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> QuestionBegunResponse:
    """A question behind an answer that has others already, or another first question, begins a branch. Its mode is its own: where none is
    given, it is asked in Chat mode with the usual switches. An archived conversation leaves the archive."""
    context.query = body.question
    begun = conversations.ask(conversation_id, body.parent_id, body.read(web_sessions))
    return responses.make_begun(begun, state.answer_html)


@router.post(
    f"{_MESSAGE}/regenerate",
    status_code=202,
    responses={409: _CONFLICT},
    summary="Answer a question once more",
)
@requires(Permission.ASK)
def regenerate_answer(
    conversation_id: ConversationId,
    message_id: MessageId,
    conversations: ConversationsDependency,
    state: AppStateDependency,
) -> AnswerBegunResponse:
    """The id is that of a question, or of one of its answers, which all are kept. It is answered in the mode in which it was asked. An
    archived conversation leaves the archive."""
    begun = conversations.regenerate(conversation_id, message_id)
    return AnswerBegunResponse(answer=responses.make_message(begun.answer, state.answer_html))


@router.post(f"{_MESSAGE}/stop", status_code=202, summary="Stop an answer")
@requires(Permission.ASK)
def stop_answer(
    conversation_id: ConversationId,
    message_id: MessageId,
    conversations: ConversationsDependency,
    state: AppStateDependency,
) -> AnswerBegunResponse:
    """Within a second the language model is stopped; what was written is kept. An answer that has ended stays as it is."""
    stopped = conversations.stop(conversation_id, message_id)
    return AnswerBegunResponse(answer=responses.make_message(stopped, state.answer_html))


@router.post(f"{_ONE}/stop", status_code=204, summary="Stop all answers of a conversation")
@requires(Permission.ASK)
def stop_answers(conversation_id: ConversationId, conversations: ConversationsDependency) -> None:
    """Also those beside the path that is shown. Within a second each is stopped; what was written is kept."""
    conversations.stop_all(conversation_id)


@router.get(
    f"{_MESSAGE}/events",
    status_code=200,
    response_class=EventStream,
    responses=dict(FOLLOWING),
    summary="Follow an answer",
)
@requires(Permission.ASK)
def follow_events(
    follower: FollowerDependency,
    asker: AskerDependency,
    state: AppStateDependency,
    first: FirstEventDependency,
) -> Response:
    """Server-sent events as those of POST /api/ask; the last may also be `stopped` or `interrupted`. The id of each is its number in
    the answer, so that a client that comes again receives the rest. The answer goes on when the connection is closed. An
    `error` without a number says that nothing more may be shown. Events are kept for an hour after the end."""
    return open_stream(follower, first, state, asker)
