"""What a person may do besides finding and reading what they may read."""

from enum import StrEnum

from backend.store.accounts.people import ADMIN_ROLE


class Role(StrEnum):
    MEMBER = "member"
    """Finds, reads and asks."""
    SOURCE_MANAGER = "source_manager"
    """Looks after sources of their own besides."""
    ADMIN = ADMIN_ROLE
    """Looks after everything: sources, people, tokens, the audit."""
