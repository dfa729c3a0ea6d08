"""A document as its page shows it: from top to bottom, one passage of it marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backend.search import media_type_labels
from backend.store.documents.documents import StoredDocument
from backend.web import urls
from backend.web.document_blocks import Block, blocks
from backend.web.sanitizing import shorten
from backend.web.search_url import Address
from connectors.document import Document, Place, Section, Span
from connectors.extraction import registry
from connectors.text_cleaning import replace_controls
from indexing.index import person_keys

LONGEST = 200_000
"""Characters on one page; a longer document is paged."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Passage:
    section: int
    """Number of the section in the document."""
    span: Span


@dataclass(frozen=True, slots=True)
class Author:
    name: str
    href: str
    """The search for documents of this author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The content between two headings, pages or tables."""

    anchor: str
    headings: tuple[tuple[int, str], ...]
    """Those that begin here, with their levels, 2 for the outermost."""
    where: str
    """The page or the sheet that begins here; empty where it goes on."""
    blocks: tuple[Block, ...]
    image: str | None = None
    """The address of the image of the page that begins here."""
    left_out: int = 0
    """Characters of it that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentView:
    id: str
    title: str
    source: str
    path: str
    format: str
    media_type: str
    authors: tuple[Author, ...]
    readers: tuple[str, ...]
    metadata: tuple[tuple[str, str], ...]
    created_at: datetime | None
    updated_at: datetime | None
    synced_at: datetime
    original: str | None
    link: str
    """The link as the source has it, for readers who cannot open `original`."""
    parts: tuple[Part, ...]
    before: int | None
    """The section to show for what comes before; None at the beginning."""
    after: int | None


def build_view(
    stored: StoredDocument, readers: Sequence[str], passage: Passage | None, begin: int = 0
) -> DocumentView:
    """Build the page of a document with its readers: around `passage`, or from section number `begin`."""
    held = stored.document
    if passage and not _stands(held, passage):
        passage = None
    window = _window(held.sections, passage.section if passage else begin)
    return DocumentView(
        id=held.id,
        title=shorten(held.title, _LONGEST_NAME) or "Untitled",
        source=replace_controls(held.source),
        path=shorten(" / ".join(held.parents), _LONGEST_NAME),
        format=media_type_labels.display_name(held.media_type),
        media_type=held.media_type,
        authors=tuple(_authors(held)),
        readers=tuple(map(replace_controls, readers)),
        metadata=tuple(_metadata(held)),
        created_at=held.created_at,
        updated_at=held.updated_at,
        synced_at=stored.indexed_at,
        original=urls.original(held.id, held.link),
        link=shorten(held.link, 2_000),
        parts=tuple(_parts(held, window, passage)),
        before=max(0, _start_before(held.sections, window.start)) if window.start else None,
        after=window.stop if window.stop < len(held.sections) else None,
    )


def _authors(document: Document) -> Iterator[Author]:
    for key, name in person_keys.names_by_key(document.owners).items():
        yield Author(shorten(name, _LONGEST_NAME), Address(people=(key,)).url)


def _stands(document: Document, passage: Passage) -> bool:
    """Return whether the passage lies within the document; that of an older version may not."""
    sections = document.sections
    return passage.section < len(sections) and passage.span.end <= len(
        sections[passage.section].text
    )


def _window(sections: Sequence[Section], around: int) -> range:
    """Return the sections from the beginning, or else from shortly before `around`, that fit on a page."""
    around = max(0, min(around, len(sections) - 1))
    if sum(len(section.text) for section in sections[: around + 1]) <= LONGEST:
        start = 0
    else:
        start = _start_before(sections, around, LONGEST // 4)
    size, stop = 0, start
    while stop < len(sections) and (size <= LONGEST or stop <= around):
        size += len(sections[stop].text)
        stop += 1
    return range(start, stop)


def _start_before(sections: Sequence[Section], at: int, room: int = LONGEST) -> int:
    """Return the first section of those before `at` that fit into `room` characters, at least one."""
    start = at
    while start > 0 and (start == at or room > 0):
        start -= 1
        room -= len(sections[start].text)
    return start


def _parts(document: Document, window: range, passage: Passage | None) -> Iterator[Part]:
    before, title = Place(), document.title
    for number in window:
        section = document.sections[number]
        span = passage.span if passage and passage.section == number else None
        text, marked = _cut_to_fit(section, span)
        bare = section.place.heading_path[-1:] == (section.text,)
        yield Part(
            anchor=f"s{number}",
            headings=tuple(_headings(before, section.place, title)),
            where=_where(before, section.place),
            blocks=() if bare and not marked else tuple(blocks(text, document.media_type, marked)),
            image=_page_image(document, before, section.place),
            left_out=len(section.text) - len(text.text),
        )
        before = section.place


def _cut_to_fit(section: Section, span: Span | None) -> tuple[Section, Span | None]:
    """Cut a section too long for a page around its passage, and return it with the position of the passage in it."""
    if len(section.text) <= LONGEST:
        return section, span
    start = max(0, span.start - LONGEST // 4) if span else 0
    cut = replace(section, text=section.text[start : start + LONGEST])
    if span is None:
        return cut, None
    return cut, Span(span.start - start, min(span.end - start, LONGEST))


def _headings(before: Place, place: Place, title: str) -> Iterator[tuple[int, str]]:
    """Yield the headings of `place` that are not open already, without one that repeats the title."""
    path = place.heading_path
    titled = path[:1] == (title,)
    is_open = True
    for depth, heading in enumerate(path):
        is_open = is_open and before.heading_path[depth : depth + 1] == (heading,)
        if not is_open and not (titled and depth == 0):
            yield min(depth + (1 if titled else 2), 6), shorten(heading, _LONGEST_NAME)


def _where(before: Place, place: Place) -> str:
    if place.page is not None and place.page != before.page:
        return f"Page {place.page}"
    if place.sheet is not None and place.sheet != before.sheet:
        return f"Sheet {shorten(place.sheet, _LONGEST_NAME)}"
    return ""


def _page_image(document: Document, before: Place, place: Place) -> str | None:
    if document.media_type != registry.PDF or place.page is None or place.page == before.page:
        return None
    return urls.page_image(document.id, document.link, place.page)


def _metadata(document: Document) -> Iterator[tuple[str, str]]:
    for key, value in document.metadata.items():
        text = value if isinstance(value, str) else ", ".join(value)
        yield shorten(key, 60), shorten(text, _LONGEST_NAME)
