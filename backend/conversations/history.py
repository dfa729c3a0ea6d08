"""What the model is told of a conversation: its questions, and the answers that the asker may read now."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.conversations.answer_gate import AnswerGate
from backend.search.llm_protocol import ChatMessage
from backend.store.messages import Message

NO_ANSWER = "(no answer)"
"""In the place of an answer that is left out: some models take questions and answers in turn only."""


@dataclass(frozen=True, slots=True)
class TurnHistory:
    messages: tuple[ChatMessage, ...]
    """Oldest first."""
    document_ids: frozenset[str]
    """Those that its answers rest on: so does what the model makes of them."""


def make_history(path: Sequence[Message], gate: AnswerGate) -> TurnHistory:
    """Make the history from the messages before a question."""
    withheld = gate.find_withheld(path)
    told = [one for one in path if one.role == "user" or (one.text and one.id not in withheld)]
    answers = {one.id: one.text for one in told if one.role == "assistant"}
    return TurnHistory(
        tuple(
            ChatMessage(
                one.role, one.text if one.role == "user" else answers.get(one.id, NO_ANSWER)
            )
            for one in path
        ),
        frozenset(document for one in told for document in one.document_ids),
    )
