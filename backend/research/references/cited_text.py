"""The text of a model with the markers that lead to a source, and what each of them is said of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from backend.chat.citations.bibliography import BibliographyFilter
from backend.chat.citations.citation_processor import (
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
)
from backend.chat.citations.cited_sentences import CitedSentence
from backend.chat.citations.evidence import Passage, split_texts
from backend.research.record.sources import NumberedSource
from connectors.document import Span


@dataclass(frozen=True, slots=True)
class CitedText:
    text: str
    """With its markers."""
    seen: Mapping[int, CitedDocument]
    """What it cites, in the order of the first citations."""
    sentences: tuple[CitedSentence, ...]
    uncited: tuple[str, ...]
    """Sentences that state something and cite nothing."""


def keep_markers(text: str, mapping: Mapping[int, CitedDocument]) -> CitedText:
    """Read the citations of a text, and leave out the list of sources that a model may have written below it."""
    source_list = BibliographyFilter()
    bare = (source_list.add(text) + source_list.end()).strip()
    processor = DynamicCitationProcessor(CitationMode.KEEP_MARKERS)
    processor.update_citation_mapping(mapping)
    pieces = [*processor.process_token(bare), *processor.process_token(None)]
    return CitedText(
        text="".join(piece for piece in pieces if isinstance(piece, str)),
        seen=processor.get_seen_citations(),
        sentences=tuple(processor.get_cited_sentences()),
        uncited=tuple(processor.get_uncited_sentences()),
    )


def split_source(source: NumberedSource) -> list[Passage]:
    """Cut what was read of a source into passages, each where it stands in the source."""
    texts = source.texts
    found = split_texts(source.title, [one.text for one in texts])
    return [_place(passage, source) for passage in found]


def _place(passage: Passage, source: NumberedSource) -> Passage:
    text = source.texts[passage.section]
    span = Span(text.start + passage.span.start, text.start + passage.span.end)
    parts = tuple(_place(part, source) for part in passage.parts)
    return replace(passage, section=text.section, span=span, parts=parts)


def describe_source(source: NumberedSource) -> dict[str, object]:
    """Describe a source to a model, without what it says."""
    dated = {"date": source.date.date().isoformat()} if source.date else {}
    return {"source": source.number, "title": source.title, "kind": source.kind.value, **dated}


def select_sources(
    sources: Mapping[int, NumberedSource], numbers: Iterable[int]
) -> tuple[NumberedSource, ...]:
    """Return the sources with these numbers, in their order."""
    return tuple(sources[number] for number in sorted({*numbers}) if number in sources)
