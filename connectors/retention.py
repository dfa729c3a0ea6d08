"""Retention: what becomes of documents that a source which only shows its latest no longer lists."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long documents stay that a listing does not contain any more.

    They were not deleted at the source, so that a short listing of it says nothing.
    """

    prefixes: tuple[str, ...]
    """What the ids of such documents begin with, after the name of the source and a colon. Others, such as those of a
    feed that the settings do not name any more, are deleted where they are not listed; many, after an approval."""
    period: timedelta | None
    """From the first listing that does not contain the document; None: for ever."""

    def keeps(self, local_id: str, unlisted_for: timedelta) -> bool:
        """Return whether a document stays that has not been listed for so long."""
        is_over = self.period is not None and unlisted_for >= self.period
        return self.covers(local_id) and not is_over

    def covers(self, local_id: str) -> bool:
        """Return whether a document need not be listed: its end is ordered by the period alone."""
        return local_id.startswith(self.prefixes)
