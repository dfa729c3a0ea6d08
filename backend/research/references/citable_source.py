"""Sources that the sentences of a text may refer to, cut into the chunks that are compared with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import regex

from backend.research.references.text_chunks import clean_chunk, split_source
from backend.web_search.results import WebPage
from connectors.document import Document, Section, Span
from connectors.extraction.result import ExtractionResult
from indexing.text.markdown_links import TARGET_IN_BRACKETS
from indexing.text.normalization import is_visible

_PICTURE = regex.compile(rf"!\[(?P<text>[^\[\]]*+)\]{TARGET_IN_BRACKETS}")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a source, with what is said of it: its alternative text, its caption, or a description."""

    url: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CitableSource:
    title: str
    url: str
    """Where a person reads it; empty where it has no address."""
    document_id: str | None = None
    texts: Sequence[str] = ()
    """Of its sections."""
    date_time: datetime | None = None
    """When it was published or last changed."""
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True, slots=True)
class SourceChunk:
    source: CitableSource
    section: int
    span: Span

    @property
    def text(self) -> str:
        return self.span.of(self.source.texts[self.section])


def make_text_source(
    title: str, url: str, text: str, date_time: datetime | None = None
) -> CitableSource:
    """Return a source of one text, plain or Markdown, whose pictures are those that it shows."""
    pictures = tuple(find_pictures(text))
    return CitableSource(
        title=title, url=url, texts=(text,), date_time=date_time, pictures=pictures
    )


def make_document_source(document: Document) -> CitableSource:
    return _make_source(
        document.sections,
        CitableSource(
            title=document.title,
            url=document.link,
            document_id=document.id,
            date_time=document.updated_at or document.created_at,
        ),
    )


def make_file_source(name: str, url: str, file: ExtractionResult) -> CitableSource:
    date_time = file.updated_at or file.created_at
    return _make_source(
        file.sections, CitableSource(title=file.title or name, url=url, date_time=date_time)
    )


def _make_source(sections: Sequence[Section], about: CitableSource) -> CitableSource:
    """Return a source of sections; those of pictures are their descriptions."""
    shown = (section for section in sections if section.kind == "image")
    described = [Picture(section.link or about.url, section.text) for section in shown]
    texts = ["" if one.kind == "image" else one.text for one in sections]
    found = (picture for text in texts for picture in find_pictures(text))
    return replace(about, texts=tuple(texts), pictures=(*described, *found))


def make_page_source(page: WebPage) -> CitableSource:
    published = page.published.at if page.published else None
    return CitableSource(
        title=page.title or page.url, url=page.url, texts=(page.text,), date_time=published
    )


def find_pictures(markdown: str) -> Iterator[Picture]:
    for found in _PICTURE.finditer(markdown):
        target: str = found["target"]
        yield Picture(target, " ".join(found["text"].split()))


def split_sources(sources: Sequence[CitableSource]) -> list[SourceChunk]:
    """Cut all sources, in their order; what holds nothing but pictures is no chunk."""
    return [
        SourceChunk(source, number, span)
        for source in sources
        for number, text in enumerate(source.texts)
        for span in split_source(text)
        if is_visible(clean_chunk(_PICTURE.sub("", span.of(text))))
    ]
