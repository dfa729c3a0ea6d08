"""When a listing has become so short that it is not believed."""

from dataclasses import dataclass

from connectors.errors import ActionRequiredError

SHARE = 0.2
DOCUMENTS = 50
"""Where more than this share of what is held, and more than so many, are missing, a person decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    source: str
    held: int
    """Documents, before the listing."""
    listed: int
    missing: int
    """Of those held."""

    def check(self, accepted: int) -> None:
        """Raises NeedsDecision: too much is missing, and more than was accepted."""
        many = self.missing > DOCUMENTS and self.missing > SHARE * self.held
        empty = self.missing > 0 and not self.listed
        if (many or empty) and self.missing > accepted:
            raise NeedsDecision(self)


class NeedsDecision(ActionRequiredError):
    """A listing would delete so much that a person is asked first."""

    def __init__(self, shrinkage: Shrinkage) -> None:
        super().__init__(_empty(shrinkage) if not shrinkage.listed else _short(shrinkage))
        self.shrinkage = shrinkage


def _empty(found: Shrinkage) -> str:
    return (
        f"{found.source!r} lists nothing, but {found.held:,} of its documents are indexed;"
        " nothing was deleted. If a disk or share is not mounted, or a right was taken"
        " away, mend that and sync again. If all of them are really gone, say so:"
        f" quarry sources accept {found.source}, or quarry sync --accept-empty."
    )


def _short(found: Shrinkage) -> str:
    return (
        f"{found.source!r} lists {found.listed:,} documents, and {found.missing:,} of the"
        f" {found.held:,} that are indexed are not among them; nothing was deleted. If a part of the source"
        " cannot be reached, or a right was taken away, mend that and sync again. If they are really"
        f" gone, say so: quarry sources accept {found.source}."
    )
