"""What one person asked Quarry to remember: list, add, edit, delete. The API, the page and the terminal call it."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from backend.store.chat import memories
from backend.store.chat.memories import Memory, MemoryPosition
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.errors import InvalidInputError
from indexing.text.normalization import is_storable, is_visible

LONGEST_MEMORY = 2_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    memories: Sequence[Memory]
    next: MemoryPosition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryService:
    database: Database
    owner: ConversationOwner
    """The person who asks: whatever they name, only their own memories exist for them."""

    def list_page(self, before: MemoryPosition | None, limit: int) -> MemoryPage:
        """Return the memories behind a position, the newest first."""
        found = memories.list_page(self.database, self.owner, before, limit + 1)
        page = found[:limit]
        is_last = len(found) <= limit
        return MemoryPage(
            page, None if is_last else MemoryPosition(page[-1].created_at, page[-1].id)
        )

    def list_all(self) -> list[Memory]:
        """Return the newest first."""
        return memories.list_page(self.database, self.owner, None, memories.MOST_MEMORIES)

    def add(self, text: str) -> Memory:
        """Add a memory. Raises InvalidInputError; ConflictError: the owner has as many as allowed."""
        return memories.add(self.database, self.owner, clean_text(text))

    def edit(self, memory_id: str, text: str) -> Memory:
        """Replace the text of a memory. Raises NotFoundError, InvalidInputError."""
        memories.set_text(self.database, self.owner, memory_id, clean_text(text))
        return memories.get(self.database, self.owner, memory_id)

    def delete(self, memory_id: str) -> None:
        """Delete a memory; answers that rest on it are withheld from then on.

        Raises:
            NotFoundError
        """
        memories.remove(self.database, self.owner, memory_id)

    def delete_all(self) -> int:
        """Delete as `delete`, and return how many there were."""
        return memories.remove_all(self.database, self.owner)


def clean_text(text: str) -> str:
    """Return a text as it is kept: composed characters (NFC), one kind of line end, no blanks at its ends.

    Raises:
        InvalidInputError: nothing of it can be seen, or it is too long.
    """
    if not is_storable(text):
        raise InvalidInputError("The text contains an invalid character.")
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = unicodedata.normalize("NFC", lines).strip()
    if not is_visible(cleaned):
        raise InvalidInputError("Write what is to be remembered, with visible characters.")
    if len(cleaned) > LONGEST_MEMORY:
        raise InvalidInputError(
            f"A memory has at most {LONGEST_MEMORY:,} characters, these are {len(cleaned):,}. Shorten the text."
        )
    return cleaned
