"""Stops a deletion check from deleting when a listing has become implausibly short."""

from dataclasses import dataclass

from connectors.errors import ConflictError

MAX_SHARE = 0.2
MAX_DOCUMENTS = 50
"""Where more than this share and more than this number of documents are missing, a person must approve."""
MAX_SHARE_OF_FEW = 0.5
FEW_DOCUMENTS = 5
"""Also where more than this share and this number are missing: a source of fifty documents is worth the question."""


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
            self.missing > documents and self.missing > share * self.held
            for documents, share in (
                (MAX_DOCUMENTS, MAX_SHARE),
                (FEW_DOCUMENTS, MAX_SHARE_OF_FEW),
            )
        )


_NOTHING_DELETED = "Nothing was deleted. A decision is needed."


class DeletionNeedsApprovalError(ConflictError):
    """A listing would delete so many documents that a person must approve first."""

    def __init__(self, guard: DeletionGuard) -> None:
        super().__init__(_empty_message(guard) if not guard.listed else _short_message(guard))
        self.guard = guard


def _empty_message(guard: DeletionGuard) -> str:
    indexed = "document is" if guard.held == 1 else "documents are"
    return (
        f"Source {guard.source!r} lists no documents, but {guard.held:,} {indexed} in the index."
        f" {_NOTHING_DELETED}"
    )


def _short_message(guard: DeletionGuard) -> str:
    return (
        f"Source {guard.source!r} lists {guard.listed:,} documents, and {guard.missing:,} of the"
        f" {guard.held:,} indexed documents are missing from the list. {_NOTHING_DELETED}"
    )
