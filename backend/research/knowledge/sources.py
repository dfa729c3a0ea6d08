"""Find out whether the documents that knowledge rests on still say what was quoted of them.

A document whose content has the same hash as when it was looked at is not read. Of one that has changed, each quote is
looked up anew: one that stands elsewhere by now is still supported, at its new place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.chat.readable_ids import is_memory_reference
from backend.research.knowledge.encoding import decode_references, encode_references
from backend.research.knowledge_items import Reference
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.research.knowledge_records import ItemSource, StoredItem
from connectors.access import Readers
from connectors.document import Span
from connectors.errors import DamagedDataError
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class ReadableTexts:
    """The texts of the sections of documents that somebody may read, each document read once."""

    database: Database
    readers: Readers
    _known: dict[str, Sequence[str] | None] = field(default_factory=dict)

    def find(self, document_id: str) -> Sequence[str] | None:
        """Return None where they may not read it, or there is none, or its text is lost."""
        if document_id not in self._known:
            self._known[document_id] = self._read(document_id)
        return self._known[document_id]

    def _read(self, document_id: str) -> Sequence[str] | None:
        try:
            found = documents.find(self.database, document_id, self.readers)
        except DamagedDataError:
            return None
        return None if found is None else [one.text for one in found.document.sections]


def check_sources(
    item: StoredItem, hashes: Mapping[str, str], texts: ReadableTexts, deadline: Deadline
) -> StoredItem:
    """Return an item with what became of its sources; itself where all of them are as they were when they were last looked at.

    Args:
        hashes: of the contents of the documents that there are, by id.

    Raises:
        DeadlineExceededError
    """
    changed = [one for one in item.sources if _has_changed(one, hashes)]
    if not changed:
        return item
    references = decode_references(item.quotes)
    sources = {one.document_id: one for one in item.sources}
    for source in changed:
        deadline.check()
        quoted = [one for one in references if one.document_id == source.document_id]
        said = texts.find(source.document_id) or ()
        located = dict(locate_references(quoted, said, deadline))
        references = tuple(located.get(one, one) for one in references)
        stands = all(one in located for one in quoted) if quoted else _is_as_it_was(source, hashes)
        # One whose text is lost is looked at again once it is there.
        is_known = not quoted or texts.find(source.document_id) is not None
        checked = hashes.get(source.document_id) if is_known else None
        sources[source.document_id] = replace(source, checked_hash=checked, quotes_stand=stands)
    quotes = encode_references(references)
    return replace(item, quotes=quotes, sources=tuple(sources.values()))


def _is_as_it_was(source: ItemSource, hashes: Mapping[str, str]) -> bool:
    return hashes.get(source.document_id) == source.content_hash


def locate_references(
    references: Iterable[Reference], texts: Sequence[str], deadline: Deadline
) -> list[tuple[Reference, Reference]]:
    """Return the references whose quotes stand in these sections, each with itself at the place where it stands now.

    Raises:
        DeadlineExceededError
    """
    located = ((one, _locate(one, texts, deadline)) for one in references)
    return [(one, found) for one, found in located if found is not None]


def _has_changed(source: ItemSource, hashes: Mapping[str, str]) -> bool:
    if is_memory_reference(source.document_id):
        return False
    return source.checked_hash is None or hashes.get(source.document_id) != source.checked_hash


def _locate(reference: Reference, texts: Sequence[str], deadline: Deadline) -> Reference | None:
    """Return the reference where its quote stands: at its place, else in its section, else in the first that has it."""
    quote, section = reference.exact_quote, reference.section
    if not quote:
        return None
    if section < len(texts) and reference.span.of(texts[section]) == quote:
        return reference
    nearest = sorted(range(len(texts)), key=lambda at: (at != section, at))
    for at in nearest:
        deadline.check()
        start = texts[at].find(quote)
        if start >= 0:
            return replace(reference, section=at, span=Span(start, start + len(quote)))
    return None
