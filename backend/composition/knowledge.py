"""Find what research found out before, for the turns that are answered with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

if TYPE_CHECKING:
    from backend.chat.earlier_findings import EarlierFinding, FindEarlier
    from backend.chat.text_nearness import SentenceModel
    from backend.chat.turn import ChatTurn
    from backend.research.knowledge_gate import KnowledgeGate
    from backend.store.conversations import ConversationOwner
    from backend.store.database import Database
    from indexing.index.protocols import Index
    from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class KnowledgeFinder:
    """Finds kept knowledge for any turn.

    Attributes:
        find_database: Returns None where there is no database yet; then nothing is kept.
    """

    find_database: "Callable[[], Database | None]"
    find_model: "Callable[[], SentenceModel]"
    find_index: "Callable[[], Index]"

    def for_turn(self, turn: "ChatTurn") -> "FindEarlier | None":
        """Return what finds what its asker may read; None where it is nobody's turn, or searches a part of the documents only."""
        from backend.research.knowledge_lookup import is_narrowed

        owner = turn.owner
        if owner is None or is_narrowed(turn):
            return None

        def find(question: str, deadline: "Deadline") -> "Sequence[EarlierFinding]":
            return self._find(turn, owner, question, deadline)

        return find

    def _find(
        self, turn: "ChatTurn", owner: "ConversationOwner", question: str, deadline: "Deadline"
    ) -> "Sequence[EarlierFinding]":
        from backend.research.knowledge_lookup import find_earlier, list_places
        from backend.search.llm_protocol import CompletionError

        if (database := self.find_database()) is None:
            return ()
        gate = self._open_gate(database, turn, owner, deadline)
        try:
            return find_earlier(gate, list_places(turn), question, self.find_model(), deadline)
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError) as error:
            raise CompletionError(str(error)) from error

    def _open_gate(
        self,
        database: "Database",
        turn: "ChatTurn",
        owner: "ConversationOwner",
        deadline: "Deadline",
    ) -> "KnowledgeGate":
        from backend.chat.readable_ids import make_own_memories
        from backend.conversations.answer_gate import AnswerGate
        from backend.research.knowledge_gate import KnowledgeGate

        answers = AnswerGate(
            index=self.find_index(),
            readers=turn.readers,
            own_memories=make_own_memories(database, owner),
            deadline=deadline,
        )
        return KnowledgeGate(database=database, asker=owner, answers=answers)
