"""The events of an answer as they are stored with its conversation, so that the pages show it as any other."""

import time
from dataclasses import dataclass, field

from pydantic import BaseModel

from backend.chat.events import AnswerDone, ChatEvent, TextPiece, TurnFailed
from backend.chat.rights_watch import AskerGoneError, DocumentWithdrawnError
from backend.conversations.turn_events import EncodedEvent
from backend.programs.slack.mrkdwn import escape
from backend.schemas.answer import AnswerDoneEvent, AnswerResponse, TextEvent
from backend.schemas.search import QueriesEvent, StepFailedEvent
from backend.schemas.system import ProblemDetails
from backend.search.events import Queries, StepFailed

FORBIDDEN = 403
_BROKEN = ProblemDetails(
    title="Internal Server Error",
    status=500,
    detail="The answer failed by an error in Quarry; its log says more.",
)


@dataclass(frozen=True, slots=True)
class SlackTurnEncoder:
    """Implements `backend.conversations.turn_events.EventEncoder`, for one turn."""

    question: str
    _began: float = field(default_factory=time.perf_counter)

    @property
    def broken(self) -> EncodedEvent:
        return _encode("error", _BROKEN)

    def encode(self, event: ChatEvent) -> EncodedEvent | None:
        match event:
            case Queries():
                return _encode("queries", QueriesEvent.model_validate(event))
            case StepFailed(step=step, reason=reason):
                return _encode("lost", StepFailedEvent(step=step, reason=reason))
            case TextPiece(text=text):
                return _encode("text", TextEvent(text=text))
            case TurnFailed(message=message, advice=advice):
                return _encode("error", _make_problem(message, advice))
            case AnswerDone():
                return self._encode_answer(event)
            case _:
                return None

    def _encode_answer(self, done: AnswerDone) -> EncodedEvent:
        seconds = time.perf_counter() - self._began
        answer = AnswerResponse.from_answer(self.question, done, seconds)
        html = f"<p>{escape(answer.answer)}</p>"
        return _encode("done", AnswerDoneEvent(answer=answer, html=html))

    def encode_failure(self, error: Exception) -> EncodedEvent:
        return _encode("error", _describe(error))


def _describe(error: Exception) -> ProblemDetails:
    match error:
        case AskerGoneError():
            return _forbid("Your account at Quarry is disabled or gone, so the answer ends here.")
        case DocumentWithdrawnError():
            return _forbid(
                "A document that this answer draws on was deleted, or not all who read along here may read it any more."
            )
        case TimeoutError():
            return _make_problem("The time limit was reached.", "Ask again.")
        case _:
            return _make_problem(str(error), "Ask again later.")


def _make_problem(detail: str, advice: str | None = None) -> ProblemDetails:
    return ProblemDetails(title="Service Unavailable", status=503, detail=detail, advice=advice)


def _forbid(detail: str) -> ProblemDetails:
    return ProblemDetails(title="Forbidden", status=FORBIDDEN, detail=detail, advice="Ask again.")


def _encode(name: str, data: BaseModel) -> EncodedEvent:
    return EncodedEvent(name, data.model_dump_json())
