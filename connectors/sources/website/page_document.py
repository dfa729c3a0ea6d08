"""Extracting the main text of a page, without menus and footers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from lxml import etree
from lxml.html import HtmlElement

from connectors.document import Section
from connectors.extraction import registry
from connectors.extraction.html import read_html
from connectors.extraction.markdown import read_markdown
from connectors.extraction.registry import is_supported
from connectors.extraction.result import ExtractionError, ExtractionResult, parse_people
from connectors.http_client.response import Response
from connectors.sources.website.page_links import read_meta_tags
from connectors.text_cleaning import parse_time, to_one_line

_MIN_ARTICLE_LENGTH = 400
"""Characters. With less text the detection of the article is not reliable."""
_MAX_PAGE_LENGTH = 2_000_000
"""Characters. The article is not detected in longer pages: it takes microseconds per character."""
_CREATED_TAGS = ("article:published_time", "datepublished", "dcterms.created", "dc.date", "date")
_UPDATED_TAGS = ("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified")
_HTML_START = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.{0,500}?-->\s*)*<(!doctype\s+html|html)[\s>]", re.I | re.S
)
_NEEDS_SCRIPT = re.compile(
    r"(enable|requires?|activate|turn on|without|need) javascript|javascript (is|must be|to)\b",
    re.I,
)
_HTML_TYPES = {registry.HTML, "application/xhtml+xml"}
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
    """Detect the type by the first bytes if they are specific, else by the header, else by the name.

    Many servers declare every type that they do not know as text/plain or text/html.
    """
    name, declared = urlsplit(response.url).path, response.media_type
    head = response.body[: registry.HEAD_SIZE]
    by_content = registry.detect_media_type("", head)
    by_name = registry.detect_media_type(name, head)
    if by_content not in (registry.TEXT, registry.UNKNOWN):
        return declared if by_content == "application/zip" and is_supported(declared) else by_name
    if _HTML_START.match(head) or declared in _HTML_TYPES:
        return registry.HTML
    if declared == "text/xml":
        return registry.XML
    if declared in ("", registry.TEXT, registry.UNKNOWN):
        return by_name
    return declared


def may_contain_text(media_type: str) -> bool:
    """Whether a file may be a document; media, feeds, style sheets and scripts are not."""
    return media_type not in _IGNORED_TYPES and not media_type.startswith(_IGNORED_PREFIXES)


def extract_page(page: str, root: HtmlElement | None, url: str) -> ExtractionResult:
    """Extract the article of the page if one is detected, else all visible text.

    Raises:
        ExtractionError: the page shows no text without scripts, or is nested too deeply.
    """
    whole = _extract_visible(page)
    tags = read_meta_tags(root) if root is not None else {}
    if _length(whole.sections) >= _MIN_ARTICLE_LENGTH and len(page) <= _MAX_PAGE_LENGTH:
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
    # The import takes half a second, which other commands must not pay.
    from trafilatura import extract
    from trafilatura.metadata import extract_metadata

    try:
        text = extract(
            page,
            url=url,
            output_format="markdown",
            include_comments=False,
            include_formatting=True,
            fast=True,
        )
        metadata = extract_metadata(
            page,
            default_url=url,
            date_config={"extensive_search": False, "original_date": True},
        )
        if not text:
            return None
        sections = read_markdown(text.encode("utf-8")).sections
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RecursionError,
        etree.LxmlError,
        ExtractionError,
    ):
        # trafilatura fails on some pages; then all visible text is used.
        return None
    return Article(
        tuple(map(_without_span, sections)), to_one_line(metadata.title or ""), metadata.author
    )


def _without_span(section: Section) -> Section:
    """Remove the position in the Markdown, which does not exist in the page."""
    return replace(section, place=replace(section.place, span=None))


def _first_time(tags: Mapping[str, str], names: tuple[str, ...]) -> datetime | None:
    return next(filter(None, (parse_time(tags.get(name, "")) for name in names)), None)


def _text(sections: tuple[Section, ...]) -> str:
    return "\n".join(section.text for section in sections)


def _length(sections: tuple[Section, ...]) -> int:
    return sum(len(section.text) for section in sections)
