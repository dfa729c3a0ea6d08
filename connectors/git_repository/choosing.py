"""Which files of a repository are read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from connectors.files.glob_patterns import Choice, any_covers
from connectors.files.paths import Parts

_LITTER = {"Thumbs.db", "desktop.ini"}


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """What the globs take in, without hidden files, locks of an office program, and litter."""

    chosen: Choice

    @classmethod
    def of(cls, include: Iterable[str], exclude: Iterable[str]) -> Self:
        """Raises ValueError: one of them is no glob."""
        return cls(Choice.of(include, exclude))

    def takes(self, parts: Parts) -> bool:
        enters = all(self._enters(parts[:end]) for end in range(1, len(parts) + 1))
        return enters and self.chosen.takes(parts)

    def _enters(self, parts: Parts) -> bool:
        name = parts[-1]
        hidden = name.startswith((".", "~$")) or name in _LITTER
        return not hidden and not any_covers(self.chosen.exclude, parts)
