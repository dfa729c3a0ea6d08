"""What a page says, without the menus around it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from lxml import etree
from lxml.html import HtmlElement

from connectors.document import Section
from connectors.extraction import media_types
from connectors.extraction.html import read_html
from connectors.extraction.markdown import read_markdown
from connectors.extraction.registry import is_supported
from connectors.extraction.result import ExtractionError, ExtractionResult, parse_people
from connectors.http_client.response import Response
from connectors.sources.website.page_links import named
from connectors.text_cleaning import parse_time, to_one_line

_LITTLE = 400
"""Characters. A page that says no more has no menus to be found out, and an article of fewer was not
found."""
_LARGEST = 2_000_000
"""Characters of a page in which the article is looked for; it takes some microseconds for each."""
_CREATED = ("article:published_time", "datepublished", "dcterms.created", "dc.date", "date")
_UPDATED = ("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified")
_PAGE = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.{0,500}?-->\s*)*<(!doctype\s+html|html)[\s>]", re.I | re.S
)
_NEEDS_SCRIPT = re.compile(
    r"(enable|requires?|activate|turn on|without|need) javascript|javascript (is|must be|to)\b",
    re.I,
)
_HTML = {media_types.HTML, "application/xhtml+xml"}
_FEEDS = {"application/rss+xml", "application/atom+xml", "text/css", "text/javascript"}
_FEEDS |= {
    "application/javascript",
    "application/zip",
    "application/gzip",
    "application/manifest+json",
}
_MEDIA = ("image/", "audio/", "video/", "font/")


@dataclass(frozen=True, slots=True)
class Article:
    """The main text of a page, and who wrote it."""

    sections: tuple[Section, ...]
    title: str | None
    author: str | None


def media_type_of(answer: Response) -> str:
    """What the body is: by its first bytes where they are plain, else as the server says, else by its
    name. Many servers call all they do not know text/plain or text/html."""
    name, head, declared = (
        urlsplit(answer.url).path,
        answer.body[: media_types.HEAD_SIZE],
        answer.media_type,
    )
    seen = media_types.detect_media_type("", head)
    by_name = media_types.detect_media_type(name, head)
    if seen not in (media_types.TEXT, media_types.UNKNOWN):
        return declared if seen == "application/zip" and is_supported(declared) else by_name
    if _PAGE.match(head) or declared in _HTML:
        return media_types.HTML
    if declared == "text/xml":
        return media_types.XML
    if declared in ("", media_types.TEXT, media_types.UNKNOWN):
        return by_name
    return declared


def holds_text(media_type: str) -> bool:
    """Whether it may be a document: pictures, feeds and what only dresses pages is none."""
    return media_type not in _FEEDS and not media_type.startswith(_MEDIA)


def read_page(page: str, root: HtmlElement | None, address: str) -> ExtractionResult:
    """The article of the page where one is found, else all that is seen of it.

    Raises:
        ExtractionError: nothing is seen of it without its scripts, or it is nested too deeply.
    """
    whole = _seen(page)
    facts = named(root) if root is not None else {}
    if _length(whole.sections) >= _LITTLE and len(page) <= _LARGEST:
        article = _article(page, address)
        if article is not None and _length(article.sections) >= _LITTLE:
            authors = parse_people([article.author]) if article.author else whole.authors
            title = article.title or whole.title
            whole = replace(whole, sections=article.sections, title=title, authors=authors)
    language = (root.get("lang") or "") if root is not None else ""
    return replace(
        whole,
        metadata={"language": language.strip()} if language.strip() else {},
        created_at=_first_time(facts, _CREATED) or whole.created_at,
        updated_at=_first_time(facts, _UPDATED) or whole.updated_at,
    )


def _seen(page: str) -> ExtractionResult:
    try:
        found = read_html(page.encode("utf-8"))
    except ExtractionError:
        if "<script" in page.lower():
            raise _only_by_script() from None
        raise
    if _length(found.sections) < _LITTLE and _NEEDS_SCRIPT.search(_text(found.sections)):
        raise _only_by_script()
    return found


def _only_by_script() -> ExtractionError:
    return ExtractionError("the page shows its text only by script, which is not run here")


def _article(page: str, address: str) -> Article | None:
    # It takes half a second, which a command that reads no page must not pay.
    from trafilatura import extract
    from trafilatura.metadata import extract_metadata

    try:
        text = extract(
            page,
            url=address,
            output_format="markdown",
            include_comments=False,
            include_formatting=True,
            fast=True,
        )
        facts = extract_metadata(
            page,
            default_url=address,
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
        # Of a page that confuses it, all is read.
        return None
    return Article(
        tuple(map(_without_span, sections)), to_one_line(facts.title or ""), facts.author
    )


def _without_span(section: Section) -> Section:
    """Its place in the Markdown says nothing of the page."""
    return replace(section, place=replace(section.place, span=None))


def _first_time(facts: Mapping[str, str], names: tuple[str, ...]) -> datetime | None:
    return next(filter(None, (parse_time(facts.get(name, "")) for name in names)), None)


def _text(sections: tuple[Section, ...]) -> str:
    return "\n".join(section.text for section in sections)


def _length(sections: tuple[Section, ...]) -> int:
    return sum(len(section.text) for section in sections)
