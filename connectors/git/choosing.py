"""Which files of a repository are read."""

from dataclasses import dataclass
from typing import Self

from connectors.globs import Glob, any_covers, any_matches
from connectors.paths import Parts

_LITTER = {"Thumbs.db", "desktop.ini"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What the globs take in, without hidden files, locks of an office program, and litter."""

    include: tuple[Glob, ...]
    """None: all."""
    exclude: tuple[Glob, ...]

    @classmethod
    def of(cls, include: tuple[str, ...], exclude: tuple[str, ...]) -> Self:
        """Raises ValueError: one of them is no glob."""
        return cls(tuple(map(Glob.of, include)), tuple(map(Glob.of, exclude)))

    def takes(self, parts: Parts) -> bool:
        if not all(self._enters(parts[:end]) for end in range(1, len(parts) + 1)):
            return False
        if self.include and not any_matches(self.include, parts):
            return False
        return not any_matches(self.exclude, parts)

    def _enters(self, parts: Parts) -> bool:
        name = parts[-1]
        hidden = name.startswith((".", "~$")) or name in _LITTER
        return not hidden and not any_covers(self.exclude, parts)
