"""What people say of answers, and what an admin may see of it: of an answer's text, no more than they may read anyway."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from backend.chat.readable_ids import is_memory_reference, is_research_reference
from backend.conversations.answer_gate import WITHHELD, AnswerGate
from backend.conversations.answer_redaction import redact
from backend.conversations.turn_record import read_variants
from backend.evaluation.judged_questions import JudgedQuestion
from backend.store import audit
from backend.store.audit import Actor
from backend.store.chat import answer_feedback, messages
from backend.store.chat.answer_feedback import Feedback, GivenFeedback, Rating
from backend.store.chat.messages import Message
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.errors import ConflictError, InvalidInputError

_PAGE = 200


@dataclass(frozen=True, slots=True)
class ReviewedFeedback:
    given: GivenFeedback
    withheld: bool
    """The admin who looks may not read what the answer rests on: nothing of it may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFeedback:
    """What somebody says of the answers that they were given."""

    database: Database
    owner: ConversationOwner
    gate: AnswerGate

    def give(self, conversation_id: str, message_id: int, feedback: Feedback) -> None:
        """Say something of an answer; what was said before is replaced.

        Raises:
            NotFoundError
            InvalidInputError: it is a question, or has no such source.
            ConflictError: the answer is being written, or is withheld.
        """
        message = messages.get(self.database, self.owner, conversation_id, message_id)
        self._check(message, feedback)
        now = datetime.now(UTC)
        answer_feedback.put(self.database, self.owner, conversation_id, message_id, feedback, now)

    def _check(self, message: Message, feedback: Feedback) -> None:
        if message.role != "assistant":
            raise InvalidInputError("This message is a question. Give the id of an answer.")
        if message.status == "running":
            raise ConflictError("This answer is still being written. Wait for its end.")
        # Before the number of the source: how many there are is the answer's, too.
        if not self.gate.allows(message.document_ids):
            raise ConflictError(WITHHELD)
        if feedback.source is not None and feedback.source not in _list_sources(message):
            raise InvalidInputError(f"This answer has no source {feedback.source}.")

    def take_back(self, conversation_id: str, message_id: int) -> None:
        """Withdraw the feedback on an answer. Raises NotFoundError."""
        answer_feedback.remove(self.database, self.owner, conversation_id, message_id)

    def list_given(self, conversation_id: str) -> list[ReviewedFeedback]:
        """List the feedback that the owner gave in a conversation. Raises NotFoundError."""
        given = answer_feedback.list_of_conversation(self.database, self.owner, conversation_id)
        return _review(given, self.gate)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackReview:
    """What everybody said, for an admin. Each look is in the audit."""

    database: Database
    gate: AnswerGate
    """By what this admin may read now."""
    actor: Actor

    def list_page(
        self, rating: Rating | None, before: int | None, limit: int
    ) -> list[ReviewedFeedback]:
        """Return what was said, the newest first."""
        found = answer_feedback.list_page(self.database, rating, before, limit)
        self._record("read_feedback", rating, len(found))
        shown = [replace(one, answer=redact(one.answer)) for one in found]
        return _review(shown, self.gate)

    def list_judged(self, rating: Rating | None) -> list[JudgedQuestion]:
        """Return the questions of which this admin may read the answers, and which documents answer them, oldest first.

        Only of feedback that says so: of good answers, and of those of which one source is wrong.
        """
        judged: list[JudgedQuestion] = []
        before: int | None = None
        while found := answer_feedback.list_page(self.database, rating, before, _PAGE):
            before = found[-1].id
            for one in _review(found, self.gate):
                judged += _judge(one)
        self._record("export_feedback", rating, len(judged))
        return judged[::-1]

    def _record(self, action: str, rating: Rating | None, number: int) -> None:
        # A name with a colon is none of a source.
        subject = f"feedback:{rating or 'all'}"
        audit.record(self.database, action, subject, {"number": number}, self.actor)


def _list_sources(message: Message) -> frozenset[int]:
    answer = message.answer or {}
    shown = (*answer.get("documents", ()), *answer.get("citations", ()))
    return frozenset(one["number"] for one in shown)


def _review(given: Sequence[GivenFeedback], gate: AnswerGate) -> list[ReviewedFeedback]:
    withheld = gate.find_withheld([one.answer for one in given])
    return [ReviewedFeedback(one, one.answer.id in withheld) for one in given]


def _judge(one: ReviewedFeedback) -> list[JudgedQuestion]:
    is_usable = one.given.answer.status == "finished" and not one.withheld
    text = _choose_text(one.given) if is_usable else None
    grades = _grade(one.given)
    if text is None or not any(grades.values()):
        return []
    return [JudgedQuestion(f"answer-{one.given.answer.id}", text, grades)]


def _choose_text(given: GivenFeedback) -> str | None:
    """Return a question that says by itself what it asks; of one that follows an answer, what the model made of it."""
    if given.question.parent_id is None:
        return given.question.text
    variants = read_variants(given.answer.answer or {})
    return next((one.text for one in variants if one.name == "semantic"), None)


def _grade(given: GivenFeedback) -> dict[str, int]:
    """Return which documents answer the question: those that a good answer cites; all but the one that is said to be wrong."""
    citations = (given.answer.answer or {}).get("citations", ())
    # Memories and kept knowledge are no documents: a search finds neither.
    cited = [one for one in citations if not _is_kept(one["document_id"])]
    match given.feedback.rating:
        case "good":
            return {one["document_id"]: 1 for one in cited}
        case "wrong_source":
            wrong = given.feedback.source
            return {one["document_id"]: int(one["number"] != wrong) for one in cited}
        case "bad":
            return {}


def _is_kept(reference: str) -> bool:
    return is_memory_reference(reference) or is_research_reference(reference)
