"""Take over items of a file: what they rest on is looked up with the rights of who imports them.

A document that the importer may not read, one that does not exist, and one that does not say what is quoted of it are answered
alike, so that nobody finds out by an import which documents there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from backend.research.knowledge.encoding import encode_item
from backend.research.knowledge.gate import KnowledgeGate
from backend.research.knowledge.kept_knowledge import DocumentVersion, ImportedItem
from backend.research.knowledge.sources import ReadableTexts, locate_references
from backend.research.knowledge_items import Reference
from backend.store.research.knowledge_records import ItemSource, KnowledgePlace, NewItem
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class ConvertedItem:
    new: NewItem
    dropped_references: int


@dataclass(frozen=True, slots=True)
class ItemImporter:
    """Converts the items of one import."""

    readable: frozenset[str]
    texts: ReadableTexts
    now: datetime
    deadline: Deadline
    is_for_others: bool
    """Whether others than the importer see the items."""

    @classmethod
    def open(
        cls, gate: KnowledgeGate, place: KnowledgePlace, given: Iterable[ImportedItem]
    ) -> Self:
        named = frozenset[str]().union(*map(_list_documents, given))
        readable = gate.answers.find_readable(named)
        deadline, is_for_others = gate.answers.deadline, place.kind == "project"
        return cls(readable, gate.open_texts(), datetime.now(UTC), deadline, is_for_others)

    def convert(self, given: Sequence[ImportedItem]) -> list[ConvertedItem]:
        """Convert findings; what has no time is listed in its order."""
        return [
            self._convert(one, self.now + timedelta(microseconds=number))
            for number, one in enumerate(given)
        ]

    def _convert(self, given: ImportedItem, now: datetime) -> ConvertedItem:
        """Convert a finding; nothing was made or corrected after now, whatever a file says."""
        references = [found for one in given.item.references if (found := self._verify(one))]
        dropped = len(given.item.references) - len(references)
        sources = self._make_sources(given, references)
        kept = {one.document_id for one in sources}
        is_whole = not dropped and all(one.document_id in kept for one in given.documents)
        item = replace(given.item, references=tuple(references))
        new = encode_item(item, given.pages, sources, min(given.made_at or now, now))
        # In a project others read it: what quotes no document that can be asked is but what the file says.
        is_quoted = any(one.document_id for one in references)
        is_bare = self.is_for_others and not is_quoted
        unverified = given.unverified or not is_whole or is_bare
        corrected = given.corrected_at and min(given.corrected_at, now)
        return ConvertedItem(replace(new, unverified=unverified, corrected_at=corrected), dropped)

    def _verify(self, reference: Reference) -> Reference | None:
        """Return a reference where it stands now; None where it is to be dropped."""
        if reference.document_id is None:
            return reference
        if reference.document_id not in self.readable:
            return None
        texts = self.texts.find(reference.document_id) or ()
        located = locate_references([reference], texts, self.deadline)
        return located[0][1] if located else None

    def _make_sources(
        self, given: ImportedItem, references: Sequence[Reference]
    ) -> list[ItemSource]:
        quoted = {one.document_id for one in references if one.document_id}
        versions = {one.document_id: one for one in given.documents}
        named = sorted((quoted | versions.keys()) & self.readable)
        unknown = DocumentVersion("", None)
        return [
            ItemSource(
                document_id=one,
                content_hash=versions.get(one, unknown).content_hash,
                checked_hash=None,
                quotes_stand=True,
            )
            for one in named
        ]


def _list_documents(given: ImportedItem) -> frozenset[str]:
    quoted = (one.document_id for one in given.item.references)
    named = (one.document_id for one in given.documents)
    return frozenset((*filter(None, quoted), *named))
