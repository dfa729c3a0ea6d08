"""The rules of document sets: each selects documents by their source, folder, tag or id."""

from dataclasses import dataclass
from enum import StrEnum

from indexing.index.protocols import Selection


class RuleKind(StrEnum):
    SOURCE = "source"
    """All of a source."""
    FOLDER = "folder"
    """What lies below a folder of a source: its id there begins so, such as a path or an address."""
    TAG = "tag"
    """What has a tag, `key=value`: in one source, or in all."""
    DOCUMENT = "document"
    """A single document, by its id."""


@dataclass(frozen=True, slots=True)
class SetRule:
    kind: RuleKind
    value: str
    """The folder, the tag, or the id; empty for a source."""
    source: str | None
    """None: a tag in any source."""

    def __str__(self) -> str:
        """Return the rule as people write it."""
        match self.kind:
            case RuleKind.SOURCE:
                return f"{self.source}"
            case RuleKind.DOCUMENT:
                return self.value
            case RuleKind.FOLDER | RuleKind.TAG:
                return self.value if self.source is None else f"{self.source}:{self.value}"

    def to_selection(self) -> Selection:
        match self.kind:
            case RuleKind.SOURCE:
                return Selection(prefix=f"{self.source}:")
            case RuleKind.FOLDER:
                return Selection(prefix=f"{self.source}:{self.value.rstrip('/')}/")
            case RuleKind.TAG:
                prefix = "" if self.source is None else f"{self.source}:"
                return Selection(prefix=prefix, tag=self.value)
            case RuleKind.DOCUMENT:
                return Selection(document_ids=frozenset({self.value}))
