"""Shared conversations as they are returned: of an answer that this reader may not see, nothing."""

from backend.api.answer_events import AnswerHtml
from backend.api.conversation_responses import make_message
from backend.conversations.service import ShownMessage
from backend.conversations.sharing import OpenedShare, ReadMessage
from backend.conversations.turn_events import FAILED
from backend.schemas.sharing import SharedConversationResponse, SharedMessageResponse


def make_shared(opened: OpenedShare, answer_html: AnswerHtml) -> SharedConversationResponse:
    return SharedConversationResponse(
        title=opened.read.title,
        shared_at=opened.shared.shared_at,
        messages=tuple(_make_message(one, answer_html) for one in opened.read.messages),
        has_earlier=opened.read.has_earlier,
    )


def _make_message(one: ReadMessage, answer_html: AnswerHtml) -> SharedMessageResponse:
    """Make a message without filters, other versions, or why it failed: they are its owner's."""
    # The place of a message among others is its owner's to know.
    shown = make_message(
        ShownMessage(one.message, one.question, (), one.withheld, summary=None, files=()),
        answer_html,
    )
    failed = FAILED if shown.status == "failed" else None
    return SharedMessageResponse(
        role=shown.role,
        text=shown.text,
        answer=shown.answer,
        html=shown.html,
        withheld=shown.withheld,
        notice=shown.notice or failed,
        losses=shown.losses,
    )
