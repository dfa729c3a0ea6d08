"""Find what an asker asked to remember, for the turns that are answered with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.errors import TemporarilyUnavailableError

if TYPE_CHECKING:
    from backend.chat.text_nearness import SentenceModel
    from backend.chat.turn import FindMemories
    from backend.store.chat.memories import Memory
    from backend.store.database import Database
    from backend.store.owner import ConversationOwner
    from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class MemoryFinder:
    """Finds the memories of any owner.

    Attributes:
        find_database: Returns None where there is no database yet; then nobody has a memory.
    """

    find_database: "Callable[[], Database | None]"
    find_model: "Callable[[], SentenceModel]"

    def for_owner(self, owner: "ConversationOwner | None") -> "FindMemories | None":
        """Return what finds those of an owner; None where nobody's are asked for."""
        if owner is None:
            return None

        def find(question: str, deadline: "Deadline") -> "Sequence[Memory]":
            return self._find(owner, question, deadline)

        return find

    def _find(
        self, owner: "ConversationOwner", question: str, deadline: "Deadline"
    ) -> "Sequence[Memory]":
        from backend.chat.memories import MOST_CHOSEN, choose_memories
        from backend.search.llm_protocol import CompletionError
        from backend.store.chat import memories

        database = self.find_database()
        if database is None:
            return ()
        try:
            every = memories.list_page(database, owner, None, memories.MOST_MEMORIES)
        except TemporarilyUnavailableError as error:
            raise CompletionError(str(error)) from error
        if not every:
            return ()
        return choose_memories(every, question, self.find_model(), MOST_CHOSEN, deadline)
