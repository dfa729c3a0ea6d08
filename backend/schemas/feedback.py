"""JSON of what people say of answers."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Self

from pydantic import JsonValue

from backend.conversations.answer_gate import WITHHELD
from backend.conversations.turn_events import NOTICES
from backend.conversations.turn_record import read_steps, read_variants
from backend.schemas.answer import AnswerDoneEvent, AnswerResponse
from backend.schemas.base import Schema, with_example
from backend.schemas.conversation import read_answer
from backend.store.chat.answer_feedback import Rating

if TYPE_CHECKING:
    from backend.conversations.feedback import ReviewedFeedback

_FEEDBACK: dict[str, JsonValue] = {
    "message_id": 2,
    "rating": "wrong_source",
    "comment": "It is about another site.",
    "source": 1,
}
_DONE = AnswerDoneEvent.example()
_VARIANT: dict[str, JsonValue] = {"name": "original", "text": "How long is parental leave?"}
_REVIEWED: dict[str, JsonValue] = {
    "id": 7,
    "given_at": "2026-03-02T09:45:00Z",
    "person": "ann@example.com",
    "rating": "wrong_source",
    "comment": "It is about another site.",
    "question": "How long is parental leave?",
    "withheld": False,
    "notice": None,
    "source": 1,
    "variants": [_VARIANT],
    "steps": {"queries": 0.02, "results": 0.11, "text": 0.6},
    "verdicts": {"verbatim": 1},
    "answer": _DONE.answer.model_dump(mode="json"),
    "html": _DONE.html,
}


class FeedbackResponse(Schema):
    model_config = with_example(**_FEEDBACK)

    message_id: int
    rating: Rating
    comment: str
    source: int | None
    """The number of the source that is wrong; null where the answer is withheld."""

    @classmethod
    def from_reviewed(cls, reviewed: "ReviewedFeedback") -> Self:
        given = reviewed.given
        return cls(
            message_id=given.answer.id,
            rating=given.feedback.rating,
            comment=given.feedback.comment,
            source=None if reviewed.withheld else given.feedback.source,
        )


class SearchedVariantResponse(Schema):
    model_config = with_example(**_VARIANT)

    name: str
    text: str


class ReviewedFeedbackResponse(Schema):
    model_config = with_example(**_REVIEWED)

    id: int
    """The newest has the highest."""
    given_at: datetime
    person: str | None
    """The address of who says it; null: the owner of the machine."""
    rating: Rating
    comment: str
    """Empty where the answer is withheld: it may quote it."""
    question: str
    withheld: bool
    """Whether the answer rests on a document that you may not read now. Nothing of it is returned then."""
    notice: str | None
    """What to say of an answer that is withheld or not complete."""
    source: int | None
    """The number of the source that is said to be wrong."""
    variants: tuple[SearchedVariantResponse, ...]
    """What was searched."""
    steps: dict[str, float]
    """When each event was first sent, in seconds from the beginning of the answer."""
    verdicts: dict[str, int]
    """How many citations have each verdict."""
    answer: AnswerResponse | None
    """Of an answer that is finished; of one that is not complete, what was said, where it cites something."""
    html: str | None
    """The text of an answer, rendered and sanitized."""

    @classmethod
    def from_reviewed(
        cls, reviewed: "ReviewedFeedback", answer_html: Callable[[AnswerResponse], str]
    ) -> Self:
        given = reviewed.given
        stored = {} if reviewed.withheld else given.answer.answer or {}
        answer = read_answer(given.question.text, stored) if stored else None
        return cls(
            id=given.id,
            given_at=given.given_at,
            person=given.email,
            rating=given.feedback.rating,
            comment="" if reviewed.withheld else given.feedback.comment,
            question=given.question.text,
            withheld=reviewed.withheld,
            notice=WITHHELD if reviewed.withheld else NOTICES.get(given.answer.status or ""),
            source=None if reviewed.withheld else given.feedback.source,
            variants=tuple(map(SearchedVariantResponse.model_validate, read_variants(stored))),
            steps=dict(read_steps(stored)),
            verdicts=Counter(one.verdict for one in answer.citations) if answer else {},
            answer=answer,
            html=answer_html(answer) if answer else None,
        )


class FeedbackPageResponse(Schema):
    model_config = with_example(feedback=[_REVIEWED], next=None)

    feedback: tuple[ReviewedFeedbackResponse, ...]
    """The newest first."""
    next: int | None
    """Given as `before`, it returns the following ones; null at the end."""
