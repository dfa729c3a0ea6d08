"""Extracting the main text of a page, without menus and footers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lxml.html import HtmlElement

from connectors.document import Section
from connectors.extraction.html import read_html
from connectors.extraction.markdown import read_markdown
from connectors.extraction.result import ExtractionError, ExtractionResult, parse_people
from connectors.extraction.web_page import (
    detect_served_type,
    extract_article,
    find_byline,
    read_meta_tags,
)
from connectors.http_client.response import Response
from connectors.text_cleaning import parse_time

_MIN_ARTICLE_LENGTH = 400
"""Characters. With less text the detection of the article is not reliable."""
_CREATED_TAGS = ("article:published_time", "datepublished", "dcterms.created", "dc.date", "date")
_UPDATED_TAGS = ("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified")
_NEEDS_SCRIPT = re.compile(
    r"(enable|requires?|activate|turn on|without|need) javascript|javascript (is|must be|to)\b",
    re.I,
)
_IGNORED_TYPES = {
    *("application/rss+xml", "application/atom+xml", "text/css", "text/javascript"),
    *("application/javascript", "application/zip", "application/gzip"),
    "application/manifest+json",
}
_IGNORED_PREFIXES = ("image/", "audio/", "video/", "font/")


@dataclass(frozen=True, slots=True)
class Article:
    """The main text of a page."""

    sections: tuple[Section, ...]
    title: str | None
    author: str | None


def detect_media_type(response: Response) -> str:
    """Return the type of what a server sent; see `detect_served_type`."""
    return detect_served_type(response.url, response.media_type, response.body)


def may_contain_text(media_type: str) -> bool:
    """Return whether a file may be a document; media, feeds, style sheets and scripts are not."""
    return media_type not in _IGNORED_TYPES and not media_type.startswith(_IGNORED_PREFIXES)


def extract_page(page: str, root: HtmlElement | None, url: str) -> ExtractionResult:
    """Extract the article of the page if one is detected, else all visible text.

    Raises:
        ExtractionError: the page shows no text without scripts, or is nested too deeply.
    """
    whole = _extract_visible(page)
    tags = read_meta_tags(root) if root is not None else {}
    if _length(whole.sections) >= _MIN_ARTICLE_LENGTH:
        article = _extract_article(page, url)
        if article is not None and _length(article.sections) >= _MIN_ARTICLE_LENGTH:
            authors = parse_people([article.author]) if article.author else whole.authors
            title = article.title or whole.title
            whole = replace(whole, sections=article.sections, title=title, authors=authors)
    language = (root.get("lang") or "") if root is not None else ""
    return replace(
        whole,
        metadata={"language": language.strip()} if language.strip() else {},
        created_at=_first_time(tags, _CREATED_TAGS) or whole.created_at,
        updated_at=_first_time(tags, _UPDATED_TAGS) or whole.updated_at,
    )


def _extract_visible(page: str) -> ExtractionResult:
    try:
        found = read_html(page.encode("utf-8"))
    except ExtractionError:
        if "<script" in page.lower():
            raise _script_error() from None
        raise
    if _length(found.sections) < _MIN_ARTICLE_LENGTH and _NEEDS_SCRIPT.search(
        _text(found.sections)
    ):
        raise _script_error()
    return found


def _script_error() -> ExtractionError:
    return ExtractionError("the page needs JavaScript to show its text, and scripts are not run")


def _extract_article(page: str, url: str) -> Article | None:
    text = extract_article(page, url, "markdown")
    if not text:
        return None
    try:
        sections = read_markdown(text.encode("utf-8")).sections
    except ExtractionError:
        return None
    byline = find_byline(page, url)
    return Article(tuple(map(_without_span, sections)), byline.title, byline.author)


def _without_span(section: Section) -> Section:
    """Remove the position in the Markdown, which does not exist in the page."""
    return replace(section, place=replace(section.place, span=None))


def _first_time(tags: Mapping[str, str], names: tuple[str, ...]) -> datetime | None:
    return next(filter(None, (parse_time(tags.get(name, "")) for name in names)), None)


def _text(sections: tuple[Section, ...]) -> str:
    return "\n".join(section.text for section in sections)


def _length(sections: tuple[Section, ...]) -> int:
    return sum(len(section.text) for section in sections)
