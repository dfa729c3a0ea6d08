"""Reading what is no page: plain text, data, feeds, PDF and office files."""

import threading
from dataclasses import dataclass

from backend.web_search.feeds import Feed, read_feed
from backend.web_search.html_content import join_sections, name_by_address
from backend.web_search.page_content import PageContent
from backend.web_search.page_dates import guess_date
from backend.web_search.page_languages import find_language
from backend.web_search.results import PageDate
from connectors.extraction import registry
from connectors.extraction.encoding import decode
from connectors.extraction.isolated import extract_isolated
from connectors.extraction.registry import extract, is_supported
from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import shorten_title
from indexing.runtime.deadline import Deadline

_PLAIN = {registry.TEXT, registry.XML, "application/json", "application/yaml"}
_LONGEST_TEXT = 2_000_000
"""Characters. Of a longer file only its beginning is read."""
_LONGEST_HEAD = 20_000
"""Characters of a Markdown file in which its title is looked for: it is parsed in this process."""
_PROCESSES = threading.BoundedSemaphore(2)
"""Processes that read files at a time: each may take much memory."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as a server sent it."""

    url: str
    media_type: str
    charset: str | None
    body: bytes


def read_file(file: ServedFile, deadline: Deadline) -> PageContent:
    """Read a file.

    Raises:
        ExtractionError: it has no text, is broken, or takes too long; the message says which.
    """
    if _is_feed(file) and (feed := read_feed(file.body, file.url)):
        return _describe_feed(feed, file)
    media_type = registry.XML if file.media_type.endswith("+xml") else file.media_type
    media_type = "application/json" if media_type.endswith("+json") else media_type
    if media_type in _PLAIN:
        return _make_content(file, "", decode(file.body, file.charset).strip(), None)
    if not is_supported(media_type):
        raise ExtractionError(
            f"it is a file of the type {media_type}, of which no text can be read"
        )
    if media_type == registry.MARKDOWN:
        text = decode(file.body, file.charset).strip()
        head = text[:_LONGEST_HEAD].encode("utf-8", "replace")
        return _make_content(file, extract(head, media_type).title or "", text, None)
    return _read_apart(file, media_type, deadline)


def _is_feed(file: ServedFile) -> bool:
    return file.media_type in (registry.XML, "text/xml") or file.media_type.endswith("+xml")


def _describe_feed(feed: Feed, file: ServedFile) -> PageContent:
    return PageContent(
        title=shorten_title(feed.title) or name_by_address(file.url),
        text=feed.text[:_LONGEST_TEXT],
        published=feed.published,
        language=find_language(None, feed.text),
        links=feed.links,
    )


def _read_apart(file: ServedFile, media_type: str, deadline: Deadline) -> PageContent:
    if not _PROCESSES.acquire(timeout=deadline.remaining()):
        raise ExtractionError("reading it takes too long")
    try:
        found = extract_isolated(file.body, media_type, deadline.remaining())
    finally:
        _PROCESSES.release()
    published = PageDate(found.created_at, is_guess=False) if found.created_at else None
    return _make_content(file, found.title or "", join_sections(found.sections), published)


def _make_content(
    file: ServedFile, title: str, text: str, published: PageDate | None
) -> PageContent:
    if not text:
        raise ExtractionError("the file is empty")
    return PageContent(
        title=shorten_title(title) or name_by_address(file.url),
        text=text[:_LONGEST_TEXT],
        published=published or guess_date(file.url, ""),
        language=find_language(None, text),
    )
