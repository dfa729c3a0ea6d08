"""What an agent has found: numbered sources with what was read of each, and knowledge."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.research.knowledge_items import KnowledgeItem
from backend.research.record.sources import NumberedSource, SourceText
from backend.search.models import SearchDoc, SearchResult


class Evidence:
    """Belongs to the thread of its agent."""

    def __init__(self, documents: Iterable[str]) -> None:
        """Begin without sources; `documents` are those that the question itself rests on."""
        self._sources: dict[int, NumberedSource] = {}
        self._documents = set(documents)
        self.knowledge: list[KnowledgeItem] = []

    @property
    def sources(self) -> Mapping[int, NumberedSource]:
        return self._sources

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of all documents of the index that were read, or that the question rests on."""
        return tuple(sorted(self._documents))

    @property
    def mapping(self) -> Mapping[int, CitedDocument]:
        return {number: one.cited_document for number, one in self._sources.items()}

    def add(self, source: NumberedSource) -> bool:
        """Add a source, or what was read of one in addition; return whether anything of it is new."""
        if source.kind is SourceKind.DOCUMENT:
            self._documents.add(source.document_id)
        self._documents.update(source.rests_on)
        known = self._sources.get(source.number)
        if known is None:
            self._sources[source.number] = source
            return True
        fresh = tuple(text for text in source.texts if text not in known.texts)
        date, title = source.date or known.date, source.title or known.title
        texts = (*known.texts, *fresh)
        self._sources[source.number] = replace(known, title=title, date=date, texts=texts)
        return bool(fresh)

    def learn(self, items: Iterable[KnowledgeItem]) -> None:
        self.knowledge += [item for item in items if item not in self.knowledge]


def list_document_sources(result: SearchResult) -> Iterator[NumberedSource]:
    """Yield a source of each section that a search has found."""
    for doc, section in zip(result.docs, result.sections, strict=True):
        texts = (SourceText(one.text, one.section, one.span.start) for one in section.chunks)
        yield replace(_make_source(doc), texts=tuple(texts))


def _make_source(doc: SearchDoc) -> NumberedSource:
    return NumberedSource(
        number=doc.number,
        kind=SourceKind.DOCUMENT,
        document_id=doc.document_id,
        title=doc.title,
        url=doc.link,
        date=doc.updated_at,
    )
