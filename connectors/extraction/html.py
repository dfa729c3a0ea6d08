"""HTML: what a reader of the page sees, by its headings."""

import re
from collections.abc import Iterator
from datetime import datetime

from lxml import etree, html
from lxml.html import HtmlElement

from connectors.document import Section
from connectors.extraction.encoding import decode
from connectors.extraction.html_tables import (
    MOST_CELLS,
    extract_data_rows,
    get_visible_text,
    is_visible,
)
from connectors.extraction.markdown_tables import format_grid
from connectors.extraction.result import ExtractionError, ExtractionResult, SizeLimit, parse_people
from connectors.extraction.section_builder import SectionBuilder
from connectors.text_cleaning import parse_time, to_one_line

_BLOCKS = {
    *("p", "div", "section", "article", "main", "header", "footer", "aside", "blockquote", "form"),
    *("ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption", "details", "summary", "address"),
    *("table", "tr", "td", "th", "caption", "fieldset", "legend", "hr", "pre", "body"),
}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CREATED = ("article:published_time", "dcterms.created", "dc.date", "date")
_UPDATED = ("article:modified_time", "dcterms.modified", "last-modified")
_DEEPEST_INDENT = 8
_LARGEST = 50_000_000
_BLANK = re.compile(r"\s+")
_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?([\w-]+)""")


def read_html(data: bytes) -> ExtractionResult:
    """A section for each heading's own text and for each table; text is transformed, so no spans.

    Raises:
        ExtractionError: not text, nothing to see on the page, too large, or nested too deeply.
    """
    if len(data) > _LARGEST:
        raise ExtractionError(f"the page is larger than {_LARGEST:,} bytes")
    root = _parsed(decode(data, _declared(data)))
    page = _Page()
    page.read(root)
    if not (sections := page.outline.build()):
        raise ExtractionError("the page holds no text")
    named = dict(_meta(root))
    return ExtractionResult(
        sections=sections,
        title=to_one_line(root.findtext(".//title") or "") or page.outline.headings.first,
        authors=parse_people([named["author"]] if "author" in named else []),
        created_at=_first_time(named, _CREATED),
        updated_at=_first_time(named, _UPDATED),
    )


def extract_html_sections(page: str) -> tuple[Section, ...]:
    """The sections of a page that stands inside another document; none when it is empty.

    Raises:
        ExtractionError: nested too deeply.
    """
    if not page.strip():
        return ()
    reading = _Page()
    reading.read(_parsed(page))
    return reading.outline.build()


def _declared(data: bytes) -> str | None:
    match = _CHARSET.search(data[:4096].lower())
    return match[1].decode("ascii") if match else None


def _parsed(page: str) -> HtmlElement:
    parser = html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = html.document_fromstring(page.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise ExtractionError("the page holds no text") from error
    if any("depth" in entry.message.lower() for entry in parser.error_log):
        raise ExtractionError("the page is nested too deeply")
    return root


def _meta(root: HtmlElement) -> Iterator[tuple[str, str]]:
    for element in root.iter("meta"):
        name = element.get("name") or element.get("property") or element.get("http-equiv")
        if name and (content := to_one_line(element.get("content") or "")):
            yield name.lower(), content


def _first_time(named: dict[str, str], names: tuple[str, ...]) -> datetime | None:
    return next(filter(None, (parse_time(named.get(name, "")) for name in names)), None)


class _List:
    """An open list; `number` is that of its next item, None where items are only marked."""

    def __init__(self, number: int | None) -> None:
        self.number = number

    def mark(self) -> str:
        if self.number is None:
            return "- "
        self.number += 1
        return f"{self.number - 1}. "


class _Page:
    """What has been read of a page so far."""

    def __init__(self) -> None:
        self.outline = SectionBuilder()
        self._text: list[str] = []
        self._lists: list[_List] = []
        self._mark = ""
        self._verbatim = 0
        self._cells = SizeLimit(MOST_CELLS, f"it has more than {MOST_CELLS:,} cells")

    def read(self, root: HtmlElement) -> None:
        """Walk the tree without recursion: pages may be nested as deeply as the parser allows."""
        steps = etree.iterwalk(root, events=("start", "end"))
        for event, element in steps:
            if event == "end":
                self._leave(element)
            elif is_visible(element) and not self._took_table(element):
                self._enter(element)
                continue
            else:
                steps.skip_subtree()
            self._say(element.tail)
        self._end_block()

    def _enter(self, element: HtmlElement) -> None:
        if element.tag in _BLOCKS or element.tag in _HEADINGS:
            self._end_block()
        match element.tag:
            case "ul":
                self._lists.append(_List(None))
            case "ol":
                start = element.get("start", "1")
                self._lists.append(_List(int(start) if re.fullmatch(r"\d{1,9}", start) else 1))
            case "li" if self._lists:
                self._mark = self._lists[-1].mark()
            case "pre":
                self._verbatim += 1
            case "br":
                self._text.append("\n")
            case "img":
                self._say(element.get("alt"))
            case _:
                pass
        self._say(element.text)

    def _leave(self, element: HtmlElement) -> None:
        tag = element.tag
        if tag in _HEADINGS:
            self.outline.add_heading(_HEADINGS[tag], self._taken())
        elif tag in _BLOCKS:
            self._end_block()
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._verbatim -= 1

    def _say(self, text: str | None) -> None:
        if text:
            self._text.append(text if self._verbatim else _BLANK.sub(" ", text))

    def _taken(self) -> str:
        text = "".join(self._text)
        self._text.clear()
        if self._verbatim:
            return text.strip("\n")
        return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()

    def _end_block(self) -> None:
        text = self._taken()
        if not text.strip():
            return
        if not self._lists:
            self.outline.add_paragraph(text)
            return
        indent = "  " * min(len(self._lists) - 1, _DEEPEST_INDENT)
        mark = self._mark or "  "
        self.outline.add_list_item(indent + mark + text.replace("\n", f"\n{indent}  "))
        self._mark = ""

    def _took_table(self, element: HtmlElement) -> bool:
        if element.tag != "table" or not (rows := extract_data_rows(element)):
            return False
        self._cells.take(sum(map(len, rows)))
        self._end_block()
        self.outline.add_paragraph(" ".join(map(get_visible_text, element.iter("caption"))))
        self.outline.add_table(format_grid(rows))
        return True
