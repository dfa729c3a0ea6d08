"""Whom conversations, files, memories and projects belong to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConversationOwner:
    person_id: int | None
    """None for the owner of a machine without accounts."""
