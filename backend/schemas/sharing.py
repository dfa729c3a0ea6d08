"""JSON of conversations that are shared by a link."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import JsonValue

from backend.schemas.answer import AnswerDoneEvent, AnswerResponse
from backend.schemas.base import Schema, with_example
from backend.schemas.search import StepFailedEvent

if TYPE_CHECKING:
    from backend.store.chat.conversation_shares import Share

_SHARE: dict[str, JsonValue] = {
    "id": "Yb3m0cWqXe2kD3vTR9sLhA",
    "path": "/shared/Yb3m0cWqXe2kD3vTR9sLhA",
    "message_id": 2,
    "created_at": "2026-03-02T09:45:00Z",
}
_DONE = AnswerDoneEvent.example()
_QUESTION: dict[str, JsonValue] = {
    "role": "user",
    "text": "How long is parental leave?",
    "answer": None,
    "html": None,
    "withheld": False,
    "notice": None,
    "losses": [],
}
_ANSWER: dict[str, JsonValue] = {
    **_QUESTION,
    "role": "assistant",
    "text": _DONE.answer.answer,
    "answer": _DONE.answer.model_dump(mode="json"),
    "html": _DONE.html,
}


class ShareResponse(Schema):
    model_config = with_example(**_SHARE)

    id: str
    path: str
    """Of the page that it leads to, on this server."""
    message_id: int
    """The path to this answer is shared; nothing that follows it."""
    created_at: datetime

    @classmethod
    def from_share(cls, share: "Share") -> Self:
        return cls(
            id=share.id,
            path=f"/shared/{share.id}",
            message_id=share.message_id,
            created_at=share.created_at,
        )


class ShareStateResponse(Schema):
    model_config = with_example(share=_SHARE)

    share: ShareResponse | None
    """Null: the conversation is not shared."""


class SharedMessageResponse(Schema):
    model_config = with_example(**_ANSWER)

    role: Literal["user", "assistant"]
    text: str
    """Of an answer: Markdown, citations as `[[1]](link)`."""
    answer: AnswerResponse | None
    """Of an answer that is finished; of one that is not complete, what was said, where it cites something."""
    html: str | None
    """The text of an answer, rendered and sanitized."""
    withheld: bool
    """Whether the answer rests on a document that you may not read now. Nothing of it is returned then."""
    notice: str | None
    """What to say of an answer that is withheld or not complete."""
    losses: tuple[StepFailedEvent, ...]
    """What an answer was written without."""


class SharedConversationResponse(Schema):
    model_config = with_example(
        title="How long is parental leave?",
        shared_at="2026-03-02T09:45:00Z",
        messages=[_QUESTION, _ANSWER],
        has_earlier=False,
    )

    title: str
    shared_at: datetime
    messages: tuple[SharedMessageResponse, ...]
    """Questions and answers, in their order."""
    has_earlier: bool
    """Whether messages stand before these: of a long conversation the last 2,000 are returned."""
