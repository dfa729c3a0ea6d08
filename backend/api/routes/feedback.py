"""What people say of answers; for admins what everybody said, of texts only what they may read."""

from typing import Annotated, Self, TypeAlias

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.conversation_dependencies import (
    HIGHEST,
    ConversationId,
    MessageId,
)
from backend.api.dependencies import AppStateDependency
from backend.api.feedback_dependencies import OwnFeedbackDependency, ReviewDependency
from backend.schemas.feedback import (
    FeedbackPageResponse,
    FeedbackResponse,
    ReviewedFeedbackResponse,
)
from backend.store.chat.answer_feedback import Feedback, Rating
from indexing.text.normalization import is_storable

router = APIRouter()
LONGEST_COMMENT = 2_000
MOST_FEEDBACK = 100
_JSON_LINES = "application/jsonl"
_OF_CONVERSATION = "/api/conversations/{conversation_id}"
_OF_ANSWER = f"{_OF_CONVERSATION}/messages/{{message_id}}/feedback"
_ALL = "/api/admin/feedback"
_EXAMPLE = '{"_id": "answer-2", "text": "How long is parental leave?", "judgments": {"handbook:people/parental-leave.md": 1}}\n'

ChosenRating: TypeAlias = Annotated[
    Rating | None, Query(description="Only answers that were rated so")
]
Before: TypeAlias = Annotated[
    int | None, Query(ge=1, le=HIGHEST, description="What `next` of the page before says")
]


def _check_comment(text: str) -> str:
    if not is_storable(text):
        raise ValueError("a character of it cannot be stored")
    return text


class FeedbackBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"rating": "wrong_source", "comment": "It is about another site.", "source": 1}
            ]
        },
    )

    rating: Rating
    comment: Annotated[str, Field(max_length=LONGEST_COMMENT), AfterValidator(_check_comment)] = ""
    source: int | None = Field(
        default=None, ge=1, le=HIGHEST, description="The number of the source that is wrong"
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.rating == "wrong_source") != (self.source is not None):
            raise ValueError(
                "give the number of a source with the rating wrong_source, and only then"
            )
        return self

    def read(self) -> Feedback:
        return Feedback(rating=self.rating, comment=self.comment.strip(), source=self.source)


@router.get(
    f"{_OF_CONVERSATION}/feedback", summary="Return what you said of the answers of a conversation"
)
@requires(Permission.ASK)
def list_own_feedback(
    conversation_id: ConversationId, feedback: OwnFeedbackDependency
) -> list[FeedbackResponse]:
    return list(map(FeedbackResponse.from_reviewed, feedback.list_given(conversation_id)))


@router.put(
    _OF_ANSWER,
    status_code=204,
    responses={409: openapi.describe_problem("The answer is being written, or is withheld")},
    summary="Say whether an answer is good, bad, or has a source that is wrong",
)
@requires(Permission.ASK)
def give_feedback(
    conversation_id: ConversationId,
    message_id: MessageId,
    body: FeedbackBody,
    feedback: OwnFeedbackDependency,
) -> None:
    """It replaces what you said before. Admins see it together with your question; of the answer, and your comment, only where they may read what it rests on."""
    feedback.give(conversation_id, message_id, body.read())


@router.delete(_OF_ANSWER, status_code=204, summary="Take back what you said of an answer")
@requires(Permission.ASK)
def take_feedback_back(
    conversation_id: ConversationId, message_id: MessageId, feedback: OwnFeedbackDependency
) -> None:
    feedback.take_back(conversation_id, message_id)


@router.get(_ALL, summary="List user feedback on answers")
@requires(Permission.ADMIN)
def list_feedback(
    review: ReviewDependency,
    state: AppStateDependency,
    rating: ChosenRating = None,
    before: Before = None,
    limit: Annotated[int, Query(ge=1, le=MOST_FEEDBACK)] = 20,
) -> FeedbackPageResponse:
    """The newest first. Of an answer that rests on a document that you may not read, nothing is returned, nor the comment on it. Each
    look is in the audit."""
    found = review.list_page(rating, before, limit + 1)
    shown = [
        ReviewedFeedbackResponse.from_reviewed(one, state.answer_html) for one in found[:limit]
    ]
    return FeedbackPageResponse(
        feedback=tuple(shown), next=shown[-1].id if len(found) > limit else None
    )


@router.get(
    f"{_ALL}/export",
    response_class=Response,
    responses={
        200: {
            "description": "One JSON object a line",
            "content": {_JSON_LINES: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
    summary="Get the judged questions in what people said, for quarry eval",
)
@requires(Permission.ADMIN)
def export_feedback(review: ReviewDependency, rating: ChosenRating = None) -> Response:
    """Each question with the documents that answer it (1) or do not (0): of good answers, and of those of which one source is
    wrong, where you may read all that the answer rests on. It is in the audit."""
    lines = "".join(one.to_line() for one in review.list_judged(rating))
    headers = {"Content-Disposition": 'attachment; filename="feedback.jsonl"'}
    return Response(lines, media_type=_JSON_LINES, headers=headers)
