"""Conversations as they are returned: of an answer that is withheld, nothing."""

from collections.abc import Sequence
from typing import Any

from backend.api.answer_events import AnswerHtml
from backend.api.list_positions import format_position, read_position
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.service import (
    BegunTurn,
    ConversationPage,
    OpenedConversation,
    ShownMessage,
)
from backend.conversations.turn_events import INTERRUPTED, STOPPED
from backend.schemas.answer import AnswerResponse
from backend.schemas.conversation import (
    ConversationResponse,
    ConversationsResponse,
    MessagePlaceResponse,
    MessageResponse,
    OpenedConversationResponse,
    QuestionBegunResponse,
    read_answer,
)
from backend.schemas.file import FileResponse
from backend.schemas.search import FiltersBody, StepFailedEvent
from backend.schemas.system import ProblemDetails
from backend.schemas.turn_mode import ModeBody, load_mode
from backend.store.chat.conversations import ListPosition
from backend.store.chat.messages import MessagePlace

_NOTICES = {"stopped": STOPPED, "interrupted": INTERRUPTED}


def make_page(page: ConversationPage) -> ConversationsResponse:
    end = page.next
    return ConversationsResponse(
        conversations=tuple(map(ConversationResponse.from_conversation, page.conversations)),
        next=None if end is None else format_position(end.updated_at, end.id),
        has_archived_matches=page.has_archived_matches,
    )


def find_position(given: str | None) -> ListPosition | None:
    """Read a position in the list, if one is given. Raises Problem: 422."""
    return None if given is None else ListPosition(*read_position(given))


def make_opened(
    opened: OpenedConversation, answer_html: AnswerHtml, newer: Sequence[MessagePlace] = ()
) -> OpenedConversationResponse:
    return OpenedConversationResponse(
        conversation=ConversationResponse.from_conversation(opened.conversation),
        messages=tuple(make_message(one, answer_html) for one in opened.messages),
        earlier=opened.earlier,
        newer=tuple(map(MessagePlaceResponse.model_validate, newer)),
    )


def make_begun(begun: BegunTurn, answer_html: AnswerHtml) -> QuestionBegunResponse:
    return QuestionBegunResponse(
        conversation=ConversationResponse.from_conversation(begun.conversation),
        question=make_message(begun.question, answer_html),
        answer=make_message(begun.answer, answer_html),
    )


def make_message(shown: ShownMessage, answer_html: AnswerHtml) -> MessageResponse:
    message = shown.message
    answer = None if shown.withheld else _make_answer(shown)
    failure = None if shown.withheld else message.problem
    return MessageResponse(
        id=message.id,
        parent_id=message.parent_id,
        role=message.role,
        text="" if shown.withheld else message.text,
        created_at=message.created_at,
        status=message.status,
        answer=answer if message.answer else None,
        html=None if answer is None else answer_html(answer),
        withheld=shown.withheld,
        notice=WITHHELD if shown.withheld else _NOTICES.get(message.status or ""),
        problem=None if failure is None else ProblemDetails.model_validate(failure),
        siblings=shown.siblings,
        summary=shown.summary,
        filters=_read_filters(shown),
        losses=() if shown.withheld else tuple(map(StepFailedEvent.model_validate, message.losses)),
        files=tuple(map(FileResponse.from_file, shown.files)),
        deleted_files=shown.deleted_files,
        search_scope=message.search_scope,
        **_read_mode(shown),
    )


def _make_answer(shown: ShownMessage) -> AnswerResponse | None:
    """Return an answer; of one that was not finished, what was written."""
    message = shown.message
    if message.answer:
        return read_answer(shown.question, message.answer)
    if message.role == "user" or not message.text:
        return None
    return AnswerResponse(
        question=shown.question, answer=message.text, model=None, citations=(), seconds=0
    )


def _read_mode(shown: ShownMessage) -> dict[str, Any]:
    if shown.message.role == "assistant":
        return {}
    return ModeBody.from_mode(load_mode(shown.message.mode)).model_dump()


def _read_filters(shown: ShownMessage) -> FiltersBody | None:
    message = shown.message
    if message.role == "assistant":
        return None
    return FiltersBody.model_validate(message.filters or {})
