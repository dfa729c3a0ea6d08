"""Confluence's storage format: XHTML with macros, links and mentions of its own, turned into plain HTML.

It is told under confluence.atlassian.com: "Confluence Storage Format" and "Confluence Storage Format for
Macros".
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
from connectors.extraction.html import html_sections
from connectors.extraction.result import CannotRead, safe

Names: TypeAlias = Callable[[str], str]
"""An account ID or a user key to the person's name; empty where it is not known."""
Html: TypeAlias = Iterator[str]
"""In pieces."""

_AC = "{http://atlassian.com/content}"
_RI = "{http://atlassian.com/resource/identifier}"
_ROOT = f'<root xmlns:ac="{_AC[1:-1]}" xmlns:ri="{_RI[1:-1]}">%s</root>'
_DATA_OR_ENTITY = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&([A-Za-z][A-Za-z0-9]*);", re.DOTALL)
_NOT_OF_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_VOID = {"br", "hr", "img", "col", "wbr"}
_KEPT = ("colspan", "rowspan", "start", "style", "alt")
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
_NEAR = 50
"""Elements within a link, a picture or a parameter among which what it leads to is looked for."""
_TOO_DEEP = "the page is nested too deeply, or too large"
_VERBATIM = {"code", "noformat"}
_UNSAID = {
    *("toc", "anchor", "children", "pagetree", "pagetreesearch", "livesearch", "attachments"),
    *("recently-updated", "contentbylabel", "change-history", "contributors", "listlabels"),
    *("blog-posts", "gallery", "style", "table-chart", "profile-picture"),
}


def sections(stored: str, names: Names) -> tuple[Section, ...]:
    """What a page says, by its headings; none where it says nothing.

    Raises:
        CannotRead: it is nested too deeply, or too large.
    """
    return html_sections(html(stored, names))


def html(stored: str, names: Names) -> str:
    """
    Raises:
        CannotRead: it is nested too deeply, or too large.
    """
    root = _parsed(stored)
    try:
        return "" if root is None else "".join(_Writer(names).inside(root))
    except RecursionError as error:
        raise CannotRead(_TOO_DEEP) from error


def _parsed(stored: str) -> Element | None:
    plain = _NOT_OF_XML.sub("\ufffd", _DATA_OR_ENTITY.sub(_spelt, safe(stored)))
    # Entities are spelt out above; none that a page declares is resolved.
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring((_ROOT % plain).encode(), parser)
    except etree.XMLSyntaxError as error:
        raise CannotRead("the page is not written as Confluence writes pages") from error
    if any("depth" in one.message.lower() or "huge" in one.message for one in parser.error_log):
        raise CannotRead(_TOO_DEEP)
    return root


def _spelt(match: re.Match[str]) -> str:
    """By numbers: after a fault in what it reads, the parser knows no names any more."""
    if not match[1]:
        return match[0]
    return "".join(f"&#{ord(each)};" for each in html5.get(f"{match[1]};", match[0]))


class _Writer:
    def __init__(self, names: Names) -> None:
        self._names = names

    def inside(self, element: Element | None) -> Html:
        """The text and the elements that an element holds."""
        if element is None:
            return
        yield escape(element.text or "")
        for child in element:
            if isinstance(child.tag, str):
                # Whole: pieces that passed through each level would cost its depth for each of them.
                yield "".join(self._element(child))
            yield escape(child.tail or "")

    def _element(self, element: Element) -> Html:
        match _local(element):
            case "ac:structured-macro" | "ac:macro":
                yield from self._macro(element)
            case "ac:link":
                yield from self._link(element)
            case "ac:image":
                yield from self._image(element)
            case "ac:task-list":
                yield from self._wrapped("ul", element)
            case "ac:task":
                yield from self._task(element)
            case "ac:emoticon":
                yield escape(_own(element, "emoji-fallback") or f":{_own(element, 'name')}:")
            case "ac:adf-extension":
                yield from self.inside(_child(element, "adf-fallback"))
            case "ac:parameter" | "ac:placeholder" | "ac:task-id":
                pass
            case "ri:user":
                yield self._mention(element)
            case "time":
                yield escape(element.get("datetime") or "")
                yield from self.inside(element)
            case name if ":" in name:
                yield from self._wrapped("div" if "layout" in name else "", element)
            case name:
                yield from self._wrapped(name, element)

    def _wrapped(self, tag: str, element: Element) -> Html:
        if not tag:
            yield from self.inside(element)
            return
        kept = ((name, element.get(name)) for name in _KEPT)
        told = "".join(f' {name}="{escape(value)}"' for name, value in kept if value)
        yield f"<{tag}{told}>"
        if tag not in _VOID:
            yield from self.inside(element)
            yield f"</{tag}>"

    def _macro(self, element: Element) -> Html:
        name = _own(element, "name")
        if name in _UNSAID:
            return
        if name in _PANELS:
            label = ": ".join(filter(None, (_PANELS[name], _parameter(element, "title"))))
            yield f"<div><p>{escape(label)}</p>"
            yield from self.inside(_child(element, "rich-text-body"))
            yield "</div>"
        elif name in _VERBATIM:
            yield f"<p>{escape(_parameter(element, 'title'))}</p>"
            yield from _verbatim(element)
        else:
            yield escape(_said(name, element))
            yield from self.inside(_child(element, "rich-text-body"))
            yield from _verbatim(element)

    def _link(self, element: Element) -> Html:
        """By its own words, else by the name of what it leads to."""
        body = _child(element, "link-body")
        plain = _child(element, "plain-text-link-body")
        words = "".join(self.inside(body)) + escape(_text(plain))
        user = element.find(f"{_RI}user")
        if user is not None and not words.strip():
            yield self._mention(user)
        else:
            yield words if words.strip() else escape(_target(element) or _own(element, "anchor"))

    def _mention(self, element: Element) -> str:
        key = _named(element, "account-id") or _named(element, "userkey")
        name = _named(element, "username") or (self._names(key) if key else "")
        return escape(f"@{name}" if name else "@somebody")

    def _image(self, element: Element) -> Html:
        said = _own(element, "alt") or _own(element, "title") or _target(element)
        yield f'<img alt="{escape(said)}">'
        caption = "".join(self.inside(_child(element, "caption")))
        yield f"<p>{caption}</p>" if caption.strip() else ""

    def _task(self, element: Element) -> Html:
        status = _text(_child(element, "task-status")).strip()
        yield f"<li>[{'x' if status == 'complete' else ' '}] "
        yield from self.inside(_child(element, "task-body"))
        yield "</li>"


def _local(element: Element) -> str:
    """`ac:link`, `ri:user`, `p`."""
    tag = str(element.tag)
    return tag.replace(_AC, "ac:").replace(_RI, "ri:").lower()


def _own(element: Element, name: str) -> str:
    return element.get(f"{_AC}{name}") or ""


def _named(element: Element, name: str) -> str:
    return element.get(f"{_RI}{name}") or ""


def _child(element: Element, name: str) -> Element | None:
    return element.find(f"{_AC}{name}")


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext()))


def _verbatim(element: Element) -> Html:
    body = _text(_child(element, "plain-text-body"))
    yield f"<pre>{escape(body)}</pre>" if body.strip() else ""


def _parameter(element: Element, name: str) -> str:
    for one in element.iterchildren(f"{_AC}parameter"):
        if _own(one, "name") == name:
            return _text(one).strip() or _target(one)
    return ""


def _said(name: str, element: Element) -> str:
    """What a macro shows that holds no text of its own."""
    match name:
        case "status":
            return _parameter(element, "title")
        case "jira":
            return _parameter(element, "key") or _parameter(element, "jqlQuery")
        case "drawio" | "gliffy":
            return _parameter(element, "diagramName") or _parameter(element, "name")
        case "include" | "excerpt-include" | "view-file" | "viewpdf" | "viewdoc" | "viewxls":
            return _parameter(element, "name") or _parameter(element, "") or _target(element)
        case _:
            return ""


def _target(element: Element) -> str:
    """The name of what an element speaks of: a page, an attachment, a space, an address."""
    attributes = ("content-title", "filename", "space-key", "value", "key")
    for one in islice(element.iter("{*}*"), _NEAR):
        told = next(filter(None, (_named(one, name) for name in attributes)), "")
        if told:
            return told
    return ""
