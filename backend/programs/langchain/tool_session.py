"""What the tools of one agent share for one conversation: the numbers of its sources, and the texts that they have shown."""

import threading
from collections.abc import Iterable, Sequence
from typing import TypedDict

from backend.chat.agent.read_texts import check_query, join_shown_texts
from backend.chat.privacy.query_privacy import CheckedQuery, TurnTexts
from backend.search.models import DocumentNumbers, InferenceSection
from backend.web_search.addresses import normalize_address
from connectors.access import PUBLIC


class NumberedSource(TypedDict):
    """A source that a tool has shown, for the list of references that a program prints."""

    number: int
    title: str
    link: str


class ToolSession:
    """Belongs to one conversation of one asker. Safe to use from several threads.

    Args:
        messages: what the asker has written. Exact terms in them may be sent to a search engine even if private documents hold them.
    """

    def __init__(self, messages: Iterable[str] = ()) -> None:
        self.numbers = DocumentNumbers()
        self._messages = list(messages)
        self._private: dict[str, None] = {}
        self._public: dict[str, None] = {}
        self._lock = threading.Lock()

    def add_message(self, message: str) -> None:
        """Note what the asker has written."""
        with self._lock:
            self._messages.append(message)

    def note_shown(self, sections: Sequence[InferenceSection]) -> None:
        """Note what the agent has read."""
        with self._lock:
            for section in sections:
                is_public = PUBLIC in section.best.chunk.access.readers
                shown = self._public if is_public else self._private
                shown[join_shown_texts(section)] = None

    def check_query(self, query: str) -> CheckedQuery:
        """Keep exact terms of private documents out of a query of the web, in disguise too."""
        with self._lock:
            private, public, own = list(self._private), list(self._public), list(self._messages)
        return check_query(query, TurnTexts(private=private, public=public, own=own))

    def number_page(self, url: str) -> int:
        """Return the number of a page, one for all spellings of its address."""
        # No id of a document begins so: the names of sources hold no blanks.
        return self.numbers.assign(f"web page {normalize_address(url) or url}")
