"""Find what research found out before, for the turns that are answered with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

if TYPE_CHECKING:
    from datetime import timedelta

    from backend.chat.earlier_findings import EarlierFinding, FindEarlier
    from backend.chat.text_nearness import SentenceModel
    from backend.chat.turn import ChatTurn
    from backend.research.dependencies import FindFindings
    from backend.research.knowledge.gate import KnowledgeGate
    from backend.store.database import Database
    from backend.store.owner import ConversationOwner
    from backend.store.research.knowledge_records import KnowledgePlace
    from backend.store.research.research_runs import ResearchRun
    from connectors.access import Readers
    from indexing.index.protocols import Index
    from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class KnowledgeFinder:
    """Finds kept knowledge for any turn.

    Attributes:
        find_database: Returns None where there is no database yet; then nothing is kept.
        web_age: after which what rests on pages of the web is stale.
    """

    find_database: "Callable[[], Database | None]"
    find_model: "Callable[[], SentenceModel]"
    find_index: "Callable[[], Index]"
    web_age: "timedelta"

    def for_turn(self, turn: "ChatTurn") -> "FindEarlier | None":
        """Return what finds what its asker may read; None where it is nobody's turn, or searches a part of the documents only."""
        from backend.research.knowledge.lookup import is_narrowed, list_places

        owner = turn.owner
        if owner is None or is_narrowed(turn):
            return None

        def find(question: str, deadline: "Deadline") -> "Sequence[EarlierFinding]":
            return self._find(list_places(turn), owner, turn.readers, question, deadline)

        return find

    def for_run(self, run: "ResearchRun") -> "FindFindings":
        """Return what finds what the owner of a run may read, in the places that `list_run_places` names."""
        from backend.research.knowledge.lookup import list_run_places

        places = list_run_places(run)

        def find(
            question: str, readers: "Readers", deadline: "Deadline"
        ) -> "Sequence[EarlierFinding]":
            return self._find(places, run.owner, readers, question, deadline)

        return find

    def _find(
        self,
        places: "Sequence[KnowledgePlace]",
        owner: "ConversationOwner",
        readers: "Readers",
        question: str,
        deadline: "Deadline",
    ) -> "Sequence[EarlierFinding]":
        from backend.research.knowledge.lookup import find_earlier
        from backend.search.llm_protocol import CompletionError

        if (database := self.find_database()) is None:
            return ()
        gate = self._open_gate(database, readers, owner, deadline)
        try:
            return find_earlier(gate, places, question, self.find_model(), deadline)
        except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError) as error:
            raise CompletionError(str(error)) from error

    def _open_gate(
        self,
        database: "Database",
        readers: "Readers",
        owner: "ConversationOwner",
        deadline: "Deadline",
    ) -> "KnowledgeGate":
        from backend.chat.readable_ids import make_own_memories
        from backend.conversations.answer_gate import AnswerGate
        from backend.research.knowledge.gate import KnowledgeGate

        answers = AnswerGate(
            index=self.find_index(),
            readers=readers,
            own_memories=make_own_memories(database, owner),
            deadline=deadline,
        )
        return KnowledgeGate(database=database, asker=owner, answers=answers, web_age=self.web_age)
