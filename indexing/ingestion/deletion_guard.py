"""Stops a deletion check from deleting when a listing has become implausibly short."""

from dataclasses import dataclass

from connectors.errors import ConflictError
from indexing.text.plural_forms import pluralize

MAX_MISSING = 50
MAX_MISSING_SHARE = 0.2
"""A person must approve where more documents are missing than this number and this share of the source."""
SMALL_SOURCE_MAX_MISSING = 5
SMALL_SOURCE_MAX_MISSING_SHARE = 0.5
"""The same for a source that is too small to ever miss more than `MAX_MISSING` documents, such as one of thirty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionGuard:
    source: str
    held: int
    """Documents in the ledger before the listing."""
    listed: int
    missing: int
    """Held documents that the listing does not contain."""

    def check(self, accepted: int) -> None:
        """Refuse the deletion of too many documents.

        Args:
            accepted: how many missing documents a person has approved.

        Raises:
            DeletionNeedsApprovalError: too many documents are missing, and more than were accepted.
        """
        empty = self.missing > 0 and not self.listed
        if (self._is_too_many or empty) and self.missing > accepted:
            raise DeletionNeedsApprovalError(self)

    @property
    def _is_too_many(self) -> bool:
        return any(
            self.missing > number and self.missing > share * self.held
            for number, share in (
                (MAX_MISSING, MAX_MISSING_SHARE),
                (SMALL_SOURCE_MAX_MISSING, SMALL_SOURCE_MAX_MISSING_SHARE),
            )
        )


_NOTHING_DELETED = "Nothing was deleted. A decision is needed."


class DeletionNeedsApprovalError(ConflictError):
    """A listing would delete so many documents that a person must approve first."""

    def __init__(self, guard: DeletionGuard) -> None:
        super().__init__(_empty_message(guard) if not guard.listed else _short_message(guard))
        self.guard = guard


def _empty_message(guard: DeletionGuard) -> str:
    indexed = pluralize(guard.held, "document is", "documents are")
    return f"Source {guard.source!r} lists no documents, but {indexed} in the index. {_NOTHING_DELETED}"


def _short_message(guard: DeletionGuard) -> str:
    return (
        f"Source {guard.source!r} lists {guard.listed:,} documents, and {guard.missing:,} of the"
        f" {guard.held:,} indexed documents are missing from the list. {_NOTHING_DELETED}"
    )
