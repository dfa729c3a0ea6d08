"""Reading feeds: RSS and Atom."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from backend.web_search.page_dates import parse_declared_date
from backend.web_search.page_links import resolve_link
from backend.web_search.results import PageDate, PageLink
from connectors.extraction.html import extract_html_sections
from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import to_one_line

_MOST_ENTRIES = 200
_MOST_CHARACTERS = 300_000
"""Of all entries, with their markup: it is read in this process, and markup can be made to take long."""
_ROOTS = {"rss", "feed", "RDF"}
_DATES = ("pubDate", "published", "updated", "date")
_SUMMARIES = ("description", "summary", "encoded", "content")


@dataclass(frozen=True, slots=True)
class Feed:
    title: str
    text: str
    published: PageDate | None
    links: tuple[PageLink, ...]


def read_feed(body: bytes, url: str) -> Feed | None:
    """Return the entries of a feed, newest as it lists them; None for other XML."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None or etree.QName(root).localname not in _ROOTS:
        return None
    channel = next(root.iterchildren("{*}channel"), root)
    entries = list(_find_entries(root, channel))
    links = dict.fromkeys(link for entry in entries if (link := _read_link(entry, url)))
    texts = filter(
        None, (_child_text(channel, "description", "subtitle"), *map(_describe, entries))
    )
    return Feed(
        title=_child_text(channel, "title"),
        text="\n\n".join(texts),
        published=_find_date(channel) or next(filter(None, map(_find_date, entries)), None),
        links=tuple(links),
    )


def _find_entries(root: etree._Element, channel: etree._Element) -> Iterator[etree._Element]:
    """Yield the first entries; none within another, whose text would be read with that of each around it."""
    parents = (channel,) if channel is root else (channel, root)
    found = (one for parent in parents for one in parent.iterchildren("{*}item", "{*}entry"))
    size = 0
    for entry in islice(found, _MOST_ENTRIES):
        yield entry
        size += sum(map(len, map(str, entry.itertext())))
        if size > _MOST_CHARACTERS:
            return


def _describe(entry: etree._Element) -> str:
    date = _find_date(entry)
    day = f"{date.at:%Y-%m-%d}" if date else ""
    lines = (_child_text(entry, "title"), day, _child_text(entry, *_SUMMARIES))
    return "\n".join(filter(None, lines))


def _read_link(entry: etree._Element, url: str) -> PageLink | None:
    for element in entry.iterchildren("{*}link"):
        if element.get("rel", "alternate") == "alternate":
            address = resolve_link(url, element.get("href") or element.text or "")
            return PageLink(address, _child_text(entry, "title")) if address else None
    return None


def _find_date(element: etree._Element) -> PageDate | None:
    texts = (text for name in _DATES if (text := _child_text(element, name)))
    return next(filter(None, map(parse_declared_date, texts)), None)


def _child_text(element: etree._Element, *names: str) -> str:
    """Return the text of the first child of one of these names, without markup."""
    for name in names:
        for child in element.iterchildren(f"{{*}}{name}"):
            if text := _strip_markup("".join(map(str, child.itertext()))):
                return text
    return ""


def _strip_markup(text: str) -> str:
    if "<" not in text:
        return to_one_line(text)
    return to_one_line(" ".join(_paragraphs(text[:_MOST_CHARACTERS])))


def _paragraphs(page: str) -> Iterator[str]:
    try:
        yield from (section.text for section in extract_html_sections(page))
    except ExtractionError:
        yield ""
