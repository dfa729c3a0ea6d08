"""Reading RSS 0.9 to 2.0 and Atom.

Strictly: a feed that ends in the middle must not be taken for a short one. Only what many programs write wrongly is
mended: entities of HTML, a bare `&`, control characters.
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree

from connectors.document import Person
from connectors.extraction.result import parse_people
from connectors.sources.feed.entries import (
    Feed,
    FeedEntry,
    InvalidFeedError,
    make_feed,
    make_key,
    parse_moment,
    resolve_link,
    text_to_html,
)
from connectors.text_cleaning import REPLACEMENT, to_one_line

_CONTENT = "{http://purl.org/rss/1.0/modules/content/}encoded"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_ATOM = "{http://www.w3.org/2005/Atom}"
_RDF_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
# The length of a feed is its author's choice: no pattern here may take more than linear time.
_DECLARATION = re.compile(r"[\s\ufeff]*<\?xml[^>]*\?>")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_CDATA, _END_OF_CDATA = "<![CDATA[", "]]>"
_REFERENCE = re.compile(r"&(#\d+;|#x[\da-fA-F]+;|\w+;)?")
_NO_CHARACTER = re.compile(r"&#\d{10,};?")
_AUTHOR = re.compile(r"\s*([^\s@]+@[^\s@]+)\s+\((.*)\)\s*")
_XML_ENTITIES = {"lt;", "gt;", "amp;", "quot;", "apos;"}


def read_xml_feed(text: str, url: str) -> Feed:
    """Read a feed that was sent from this address.

    Raises:
        InvalidFeedError: it is not one.
    """
    root = _parse(text)
    match etree.QName(root).localname:
        case "rss" | "RDF":
            return _read_rss(root, url)
        case "feed":
            return _read_atom(root, url)
        case name:
            raise InvalidFeedError(f"is not a feed: its root element is <{name}>")


def _parse(text: str) -> etree._Element:
    if declaration := _DECLARATION.match(text):
        text = text[declaration.end() :]
    try:
        return _parse_strictly(text)
    except etree.XMLSyntaxError:
        pass
    try:
        return _parse_strictly(_mend(text))
    except etree.XMLSyntaxError as error:
        raise InvalidFeedError(f"is not a feed: it is not valid XML ({error.msg})") from error


def _parse_strictly(text: str) -> etree._Element:
    # Nothing is loaded or expanded; nesting and size of texts keep to the limits of the parser.
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    root = etree.fromstring(text.encode("utf-8", "replace"), parser=parser)
    # The type stubs do not know a document without a DTD, nor the entities of one.
    declared: Any = root.getroottree().docinfo.internalDTD
    if declared is not None and any(declared.iterentities()):
        raise InvalidFeedError("declares entities of its own, which are not read")
    return root


def _mend(text: str) -> str:
    return "".join(_mend_parts(_CONTROL.sub("", text)))


def _mend_parts(text: str) -> Iterator[str]:
    """Yield a text with its references mended, but for its sections of plain text."""
    at = 0
    while (start := text.find(_CDATA, at)) >= 0:
        yield _REFERENCE.sub(_mend_reference, text[at:start])
        end = text.find(_END_OF_CDATA, start)
        at = len(text) if end < 0 else end + len(_END_OF_CDATA)
        yield text[start:at]
    yield _REFERENCE.sub(_mend_reference, text[at:])


def _mend_reference(match: re.Match[str]) -> str:
    name = match[1]
    if name is None:
        return "&amp;"
    if name in _XML_ENTITIES or name.startswith("#"):
        return match[0]
    return html.escape(html.unescape(match[0]), quote=False)


def _read_rss(root: etree._Element, url: str) -> Feed:
    channel = root.find("{*}channel")
    if channel is None:
        raise InvalidFeedError("is not a feed: it has no <channel>")
    link = resolve_link(url, _find_text(channel, "link"))
    # In RSS 1.0 the items stand beside the channel.
    items = [*channel.findall("{*}item"), *root.findall("{*}item")]
    entries = [_read_item(item, url) for item in items]
    return make_feed(_unescape(_find_text(channel, "title")), link, entries)


def _read_item(item: etree._Element, url: str) -> FeedEntry:
    guid = item.find(_own(item, "guid"))
    stated_id = _text(guid) or item.get(_RDF_ABOUT) or ""
    is_link = guid is None or guid.get("isPermaLink", "true").lower() == "true"
    base = _base_of(item, url)
    link = resolve_link(base, _find_text(item, "link"))
    if not link and is_link and re.match("https?://", stated_id):
        link = resolve_link(base, stated_id)
    title = to_one_line(_unescape(_find_text(item, "title")))
    body = _text(item.find(_CONTENT)) or _find_text(item, "description")
    names = [_find_text(item, "author"), *map(_text, item.findall(f"{_DUBLIN_CORE}creator"))]
    published = parse_moment(_find_text(item, "pubDate") or _text(item.find(f"{_DUBLIN_CORE}date")))
    changed = _text(item.find(f"{_ATOM}updated")) or _text(item.find(f"{_TERMS}modified"))
    return FeedEntry(
        key=make_key(stated_id, link, title, body),
        title=title,
        link=link,
        html=body,
        authors=parse_people(map(_unwrap_name, names)),
        categories=_to_names(map(_text, item.findall(_own(item, "category")))),
        published=published,
        updated=parse_moment(changed),
    )


def _read_atom(root: etree._Element, url: str) -> Feed:
    entries = [_read_entry(entry, url) for entry in root.findall(_own(root, "entry"))]
    return make_feed(_read_plain(root, "title"), _find_link(root, url), entries)


def _read_entry(entry: etree._Element, url: str) -> FeedEntry:
    title, link = to_one_line(_read_plain(entry, "title")), _find_link(entry, url)
    body = _read_html(entry, "content") or _read_html(entry, "summary")
    # `issued` and `modified` are of Atom 0.3.
    published = _find_text(entry, "published") or _find_text(entry, "issued")
    updated = _find_text(entry, "updated") or _find_text(entry, "modified")
    categories = entry.findall(_own(entry, "category"))
    return FeedEntry(
        key=make_key(_find_text(entry, "id"), link, title, body),
        title=title,
        link=link,
        html=body,
        authors=tuple(_read_people(entry)),
        categories=_to_names(one.get("label") or one.get("term") or "" for one in categories),
        published=parse_moment(published),
        updated=parse_moment(updated),
    )


def _read_people(entry: etree._Element) -> Iterator[Person]:
    for author in entry.findall(_own(entry, "author")):
        name, email = to_one_line(_find_text(author, "name")), _find_text(author, "email")
        if name or email:
            yield Person(name or email, email.lower() or None)


def _find_link(element: etree._Element, url: str) -> str:
    links = element.findall(_own(element, "link"))
    pages = [one for one in links if one.get("rel", "alternate") == "alternate"]
    pages.sort(key=lambda one: one.get("type", "text/html") != "text/html")
    base = _base_of(element, url)
    return next(filter(None, (resolve_link(base, one.get("href", "")) for one in pages)), "")


def _read_html(element: etree._Element, name: str) -> str:
    found = element.find(_own(element, name))
    if found is None or found.get("src"):
        return ""
    match found.get("type", "text"):
        case "html" | "text/html":
            return _text(found)
        case "xhtml" | "application/xhtml+xml":
            return _serialize_markup(found)
        case "text" | "text/plain":
            return text_to_html(_text(found))
        case _:
            return ""


def _read_plain(element: etree._Element, name: str) -> str:
    found = element.find(_own(element, name))
    text = _text(found)
    is_html = found is not None and found.get("type") in ("html", "text/html")
    return _unescape(re.sub(r"<[^<>]*>", "", text)) if is_html else text


def _serialize_markup(element: etree._Element) -> str:
    """Return the markup inside an element as HTML, which knows no prefixes of names."""
    for inner in element.iterdescendants(etree.Element):
        inner.tag = etree.QName(inner).localname
    parts = (etree.tostring(one, encoding="unicode", method="html") for one in element)
    return html.escape(element.text or "") + "".join(parts)


def _base_of(element: etree._Element, url: str) -> str:
    return resolve_link(url, element.base or "") or url


def _own(element: etree._Element, name: str) -> str:
    """Return the name in the namespace of the element, so that `media:title` is no `title`."""
    namespace = etree.QName(element).namespace
    return f"{{{namespace}}}{name}" if namespace else name


def _find_text(element: etree._Element, name: str) -> str:
    return _text(element.find(_own(element, name)))


def _text(element: etree._Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext())).strip()


def _to_names(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(to_one_line, texts))))


def _unwrap_name(text: str) -> str:
    """Turn the author of RSS, `ann@example.com (Ann Lee)`, into `Ann Lee <ann@example.com>`."""
    match = _AUTHOR.fullmatch(text)
    return f"{match[2]} <{match[1]}>" if match else text


def _unescape(text: str) -> str:
    """Resolve the references of HTML; Python raises an error for numbers of thousands of digits."""
    return html.unescape(_NO_CHARACTER.sub(REPLACEMENT, text))
