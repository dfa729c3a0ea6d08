"""What pages of the web are read with: their type, their encoding, what a person sees of them, and the article."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from lxml import etree, html
from lxml.html import HtmlElement

from connectors.extraction import registry
from connectors.extraction.encoding import decode
from connectors.extraction.html import check_attributes, find_declared_encoding
from connectors.extraction.registry import is_supported
from connectors.text_cleaning import to_one_line

_MAX_PAGE_LENGTH = 2_000_000
"""Characters. The article is not detected in longer pages: it takes microseconds per character."""
_HTML_START = re.compile(
    # A comment ends at its first `-->`: with a choice, many comments take exponential time.
    rb"\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->).){0,500}-->\s*)*<(!doctype\s+html|html)[\s>]",
    re.I | re.S,
)
_HTML_TYPES = {registry.HTML, "application/xhtml+xml"}
_HIDDEN_STYLE = re.compile(
    r"display:none|visibility:(hidden|collapse)|font-size:0(?![.\d])|(left|top|text-indent):-\d{3,}"
)
_DESCRIPTIONS = ("alt", "title", "aria-label")
# trafilatura fails on some pages; then all visible text is used.
_FAILURES = (ValueError, TypeError, AttributeError, LookupError, RecursionError, etree.LxmlError)


@dataclass(frozen=True, slots=True)
class Byline:
    title: str
    author: str | None


def detect_served_type(url: str, declared: str, body: bytes) -> str:
    """Detect the type by the first bytes if they are specific, else by the declared type, else by the name.

    Many servers declare every type that they do not know as text/plain or text/html.
    """
    name, head = urlsplit(url).path, body[: registry.HEAD_SIZE]
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


def decode_page(body: bytes, declared: str | None) -> str:
    """Decode a page by its own bytes, by the encoding that the server declares, or by the one that the page declares.

    Raises:
        ExtractionError: it is not text.
    """
    return decode(body, declared or find_declared_encoding(body))


def parse_html(page: str) -> HtmlElement | None:
    """Return None for an empty page. It is parsed as bytes: lxml refuses a text that declares its encoding.

    Raises:
        ExtractionError: a tag has too many attributes.
    """
    check_attributes(page)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        return html.document_fromstring(page.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None


def read_meta_tags(root: HtmlElement) -> Mapping[str, str]:
    """Return the `meta` elements by their names in lower case; of each name the first."""
    found: dict[str, str] = {}
    for element in root.iter("meta"):
        name = element.get("name") or element.get("property") or element.get("itemprop")
        if name:
            found.setdefault(name.lower(), to_one_line(element.get("content") or ""))
    return found


def remove_hidden(root: HtmlElement) -> None:
    """Remove what attributes hide from a person who looks at the page, and descriptions of what is shown.

    Style sheets may hide more. The body stays: many pages show it by a script when they are loaded.
    """
    for element in list(root.iter(etree.Element)):
        if element.tag not in ("html", "body", "head") and _is_hidden(element):
            _drop(element)
        else:
            for name in _DESCRIPTIONS:
                element.attrib.pop(name, None)


def _is_hidden(element: HtmlElement) -> bool:
    style = re.sub(r"\s", "", element.get("style") or "").lower()
    return (
        element.tag == "template"
        or element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(style) is not None
    )


def _drop(element: HtmlElement) -> None:
    """Remove an element, and keep the text behind it."""
    if element.getparent() is not None:
        element.drop_tree()


def extract_article(page: str, url: str, output_format: Literal["markdown", "txt"]) -> str | None:
    """Return the main text without menus and footers, or None if none is detected."""
    if len(page) > _MAX_PAGE_LENGTH:
        return None
    # The import takes half a second, which other commands must not pay.
    from trafilatura import extract

    try:
        return extract(
            page,
            url=url,
            output_format=output_format,
            include_comments=False,
            include_formatting=output_format == "markdown",
            fast=True,
        )
    except _FAILURES:
        return None


def find_byline(page: str, url: str) -> Byline:
    """Return the title and the author that the markup of a page names."""
    from trafilatura.metadata import extract_metadata

    try:
        found = extract_metadata(
            page,
            default_url=url,
            date_config={"extensive_search": False, "original_date": True},
        )
    except _FAILURES:
        return Byline("", None)
    return Byline(to_one_line(found.title or ""), found.author)
