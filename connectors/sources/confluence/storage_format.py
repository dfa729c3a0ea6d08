"""Conversion of Confluence's storage format (XHTML with macros, links and mentions) to plain HTML.

The format is described at confluence.atlassian.com: "Confluence Storage Format" and "Confluence Storage
Format for Macros".
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from html.entities import html5
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

from lxml import etree
from lxml.etree import _Element as Element

from connectors.document import Section
from connectors.extraction.html import extract_html_sections
from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import replace_unstorable

NameLookup: TypeAlias = Callable[[str], str]
"""Returns the name of a user for an account ID or a user key; empty if it is not known."""
HtmlParts: TypeAlias = Iterator[str]

_AC = "{http://atlassian.com/content}"
_RI = "{http://atlassian.com/resource/identifier}"
_ROOT = f'<root xmlns:ac="{_AC[1:-1]}" xmlns:ri="{_RI[1:-1]}">%s</root>'
_DATA_OR_ENTITY = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&([A-Za-z][A-Za-z0-9]*);", re.DOTALL)
_INVALID_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_VOID = {"br", "hr", "img", "col", "wbr"}
_COPIED_ATTRIBUTES = ("colspan", "rowspan", "start", "style", "alt")
_PANELS: Mapping[str, str] = MappingProxyType(
    {
        "info": "Info",
        "note": "Note",
        "tip": "Tip",
        "warning": "Warning",
        "success": "Success",
        "error": "Error",
        "panel": "",
        "expand": "",
    }
)
_MAX_SEARCHED = 50
"""Elements within a link, an image or a parameter that are searched for its target."""
_TOO_DEEP = "the page is nested too deeply, or too large"
_VERBATIM_MACROS = {"code", "noformat"}
_IGNORED_MACROS = {
    *("toc", "anchor", "children", "pagetree", "pagetreesearch", "livesearch", "attachments"),
    *("recently-updated", "contentbylabel", "change-history", "contributors", "listlabels"),
    *("blog-posts", "gallery", "style", "table-chart", "profile-picture"),
}


def parse_sections(source: str, get_name: NameLookup) -> tuple[Section, ...]:
    """Split a page into sections by its headings; none if it has no text.

    Raises:
        ExtractionError: it is nested too deeply, or too large.
    """
    return extract_html_sections(to_html(source, get_name))


def to_html(source: str, get_name: NameLookup) -> str:
    """Convert a page to HTML.

    Raises:
        ExtractionError: it is nested too deeply, or too large.
    """
    root = _parse(source)
    try:
        return "" if root is None else "".join(_HtmlWriter(get_name).write_children(root))
    except RecursionError as error:
        raise ExtractionError(_TOO_DEEP) from error


def _parse(source: str) -> Element | None:
    plain = _INVALID_IN_XML.sub(
        "\ufffd", _DATA_OR_ENTITY.sub(_expand_entity, replace_unstorable(source))
    )
    # HTML entities are expanded above; none that a page declares is resolved.
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring((_ROOT % plain).encode(), parser)
    except etree.XMLSyntaxError as error:
        raise ExtractionError("the page is not in the storage format") from error
    if any("depth" in one.message.lower() or "huge" in one.message for one in parser.error_log):
        raise ExtractionError(_TOO_DEEP)
    return root


def _expand_entity(match: re.Match[str]) -> str:
    # To numeric references: after an error in its input the parser recognizes no names any more.
    if not match[1]:
        return match[0]
    return "".join(f"&#{ord(each)};" for each in html5.get(f"{match[1]};", match[0]))


class _HtmlWriter:
    def __init__(self, get_name: NameLookup) -> None:
        self._get_name = get_name

    def write_children(self, element: Element | None) -> HtmlParts:
        """Write the text and the child elements of an element."""
        if element is None:
            return
        yield escape(element.text or "")
        for child in element:
            if isinstance(child.tag, str):
                # Joined: yielding each part through every level would cost its depth for each part.
                yield "".join(self._write_element(child))
            yield escape(child.tail or "")

    def _write_element(self, element: Element) -> HtmlParts:
        match _get_tag(element):
            case "ac:structured-macro" | "ac:macro":
                yield from self._write_macro(element)
            case "ac:link":
                yield from self._write_link(element)
            case "ac:image":
                yield from self._write_image(element)
            case "ac:task-list":
                yield from self._write_wrapped("ul", element)
            case "ac:task":
                yield from self._write_task(element)
            case "ac:emoticon":
                yield escape(_get_ac(element, "emoji-fallback") or f":{_get_ac(element, 'name')}:")
            case "ac:adf-extension":
                yield from self.write_children(_find_child(element, "adf-fallback"))
            case "ac:parameter" | "ac:placeholder" | "ac:task-id":
                pass
            case "ri:user":
                yield self._format_mention(element)
            case "time":
                yield escape(element.get("datetime") or "")
                yield from self.write_children(element)
            case name if ":" in name:
                yield from self._write_wrapped("div" if "layout" in name else "", element)
            case name:
                yield from self._write_wrapped(name, element)

    def _write_wrapped(self, tag: str, element: Element) -> HtmlParts:
        if not tag:
            yield from self.write_children(element)
            return
        values = ((name, element.get(name)) for name in _COPIED_ATTRIBUTES)
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in values if value)
        yield f"<{tag}{attributes}>"
        if tag not in _VOID:
            yield from self.write_children(element)
            yield f"</{tag}>"

    def _write_macro(self, element: Element) -> HtmlParts:
        name = _get_ac(element, "name")
        if name in _IGNORED_MACROS:
            return
        if name in _PANELS:
            label = ": ".join(filter(None, (_PANELS[name], _get_parameter(element, "title"))))
            yield f"<div><p>{escape(label)}</p>"
            yield from self.write_children(_find_child(element, "rich-text-body"))
            yield "</div>"
        elif name in _VERBATIM_MACROS:
            yield f"<p>{escape(_get_parameter(element, 'title'))}</p>"
            yield from _write_verbatim(element)
        else:
            yield escape(_get_macro_text(name, element))
            yield from self.write_children(_find_child(element, "rich-text-body"))
            yield from _write_verbatim(element)

    def _write_link(self, element: Element) -> HtmlParts:
        """Write the text of a link, else the name of its target."""
        body = _find_child(element, "link-body")
        plain = _find_child(element, "plain-text-link-body")
        text = "".join(self.write_children(body)) + escape(_get_text(plain))
        user = element.find(f"{_RI}user")
        if user is not None and not text.strip():
            yield self._format_mention(user)
        else:
            yield (
                text
                if text.strip()
                else escape(_find_target(element) or _get_ac(element, "anchor"))
            )

    def _format_mention(self, element: Element) -> str:
        key = _get_ri(element, "account-id") or _get_ri(element, "userkey")
        name = _get_ri(element, "username") or (self._get_name(key) if key else "")
        return escape(f"@{name}" if name else "@somebody")

    def _write_image(self, element: Element) -> HtmlParts:
        label = _get_ac(element, "alt") or _get_ac(element, "title") or _find_target(element)
        yield f'<img alt="{escape(label)}">'
        caption = "".join(self.write_children(_find_child(element, "caption")))
        yield f"<p>{caption}</p>" if caption.strip() else ""

    def _write_task(self, element: Element) -> HtmlParts:
        status = _get_text(_find_child(element, "task-status")).strip()
        yield f"<li>[{'x' if status == 'complete' else ' '}] "
        yield from self.write_children(_find_child(element, "task-body"))
        yield "</li>"


def _get_tag(element: Element) -> str:
    """Return the tag with its usual prefix: `ac:link`, `ri:user`, `p`."""
    tag = str(element.tag)
    return tag.replace(_AC, "ac:").replace(_RI, "ri:").lower()


def _get_ac(element: Element, name: str) -> str:
    return element.get(f"{_AC}{name}") or ""


def _get_ri(element: Element, name: str) -> str:
    return element.get(f"{_RI}{name}") or ""


def _find_child(element: Element, name: str) -> Element | None:
    return element.find(f"{_AC}{name}")


def _get_text(element: Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext()))


def _write_verbatim(element: Element) -> HtmlParts:
    body = _get_text(_find_child(element, "plain-text-body"))
    yield f"<pre>{escape(body)}</pre>" if body.strip() else ""


def _get_parameter(element: Element, name: str) -> str:
    for one in element.iterchildren(f"{_AC}parameter"):
        if _get_ac(one, "name") == name:
            return _get_text(one).strip() or _find_target(one)
    return ""


def _get_macro_text(name: str, element: Element) -> str:
    """Return what a macro without a body shows."""
    match name:
        case "status":
            return _get_parameter(element, "title")
        case "jira":
            return _get_parameter(element, "key") or _get_parameter(element, "jqlQuery")
        case "drawio" | "gliffy":
            return _get_parameter(element, "diagramName") or _get_parameter(element, "name")
        case "include" | "excerpt-include" | "view-file" | "viewpdf" | "viewdoc" | "viewxls":
            return (
                _get_parameter(element, "name")
                or _get_parameter(element, "")
                or _find_target(element)
            )
        case _:
            return ""


def _find_target(element: Element) -> str:
    """Return the name of what an element refers to: a page, an attachment, a space, a URL."""
    attributes = ("content-title", "filename", "space-key", "value", "key")
    for one in islice(element.iter("{*}*"), _MAX_SEARCHED):
        name = next(filter(None, (_get_ri(one, name) for name in attributes)), "")
        if name:
            return name
    return ""
