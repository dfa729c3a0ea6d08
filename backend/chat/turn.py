"""A turn of a conversation: the message to be answered, how, and what answers it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias

from backend.chat.context_files import ContextFile
from backend.chat.earlier_findings import FindEarlier
from backend.chat.llm.client import ChatModel
from backend.chat.pictures import Picture
from backend.chat.turn_settings import DEFAULT_MODE, PLAIN, AssistantSettings, TurnMode
from backend.search.llm_protocol import ChatMessage, Complete
from backend.search.models import DocumentNumbers, ReadWords, read_nothing
from backend.search.search_tool import SearchTool
from backend.store.chat.memories import Memory
from backend.store.owner import ConversationOwner
from backend.store.web_cache import CachedSession
from backend.web_search.tool_texts import Language
from backend.web_search.web_session import WebSession
from connectors.access import Readers
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline

FindMemories: TypeAlias = Callable[[str, Deadline], Sequence[Memory]]
"""Returns what the asker asked to remember that a question is answered with. Raises CompletionError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """A message to be answered: by whom, and until when."""

    message: str
    readers: Readers
    deadline: Deadline
    person_id: int
    """Whose tokens are counted; `NOBODY` for the person at the machine and for service tokens."""
    owner: ConversationOwner | None = None
    """Whose memories it is answered with; None where nobody's are."""
    history: tuple[ChatMessage, ...] = ()
    """Oldest first, without the message."""
    summary: str = ""
    """Of what was said before the history."""
    filters: Filters = field(default_factory=Filters)
    files: tuple[ContextFile, ...] = ()
    searches_files: bool = False
    """Files that came with questions are too long to be read whole, and what is searched holds them."""
    pictures: tuple[Picture, ...] = ()
    """Shown to a model that sees."""
    today: date | None = None
    mode: TurnMode = DEFAULT_MODE
    language: Language = "en"
    """Of the pages of the asker; tools are described in it."""
    web_session: CachedSession | None = None
    """What was searched and read on the web is kept with this conversation; None for a turn that belongs to none."""
    assistant: AssistantSettings = PLAIN

    @property
    def conversation_id(self) -> str | None:
        return None if self.web_session is None else self.web_session.conversation_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDependencies:
    """What answers a turn."""

    model: ChatModel
    count_tokens: CountTokens
    search: SearchTool | None
    """None turns searching off."""
    numbers: DocumentNumbers
    """Shared with the search; made for this turn."""
    infer: ReadWords = read_nothing
    """Reads words of the message as filters."""
    search_seconds: float = 30.0
    fallback: ChatModel | None = None
    """Takes over where the model fails before the first token of the answer."""
    complete: Complete | None = None
    """Asks the fast model; None where none is set."""
    web: WebSession | None = None
    """None where the web is switched off."""
    find_memories: FindMemories | None = None
    """None where nobody's memories are used."""
    find_earlier: FindEarlier | None = None
    """None where no kept knowledge is used."""
    selection_tokens: int | None = None
    """The most that the model which selects is shown; None where it is the one that answers."""
