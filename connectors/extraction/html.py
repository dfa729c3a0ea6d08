"""Read the visible text of HTML pages, divided by headings."""

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
from connectors.extraction.result import (
    ExtractionError,
    ExtractionResult,
    SectionBuilder,
    SizeLimit,
    parse_people,
)
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
_MOST_ATTRIBUTES = 1000
_SPACE = r" \t\n\f\r"
_ATTRIBUTE = rf"""[{_SPACE}/]*+[^{_SPACE}/>][^{_SPACE}/>=]*+(?:[{_SPACE}]*+=[{_SPACE}]*+(?:"[^"]*+"|'[^']*+'|[^{_SPACE}>]*+))?+"""
# Comments, scripts and style sheets are passed over: a < in them begins no tag. What other elements contain as text
# alone, libxml2 may read as tags, as what is behind <!-->, and behind a script that ends in its own tag.
_TAG = re.compile(
    rf"""<!--(?:-?>|.*?(?:--!?>|\Z))
    |<(?:(?P<raw>script|style)(?=[{_SPACE}/>])|[a-z][^{_SPACE}/>]*+)
    (?:{_ATTRIBUTE}){{0,{_MOST_ATTRIBUTES}}}+(?P<more>{_ATTRIBUTE})?+
    (?(raw)(?:[{_SPACE}/]*+(?<=/)>|.*?(?:</(?P=raw)|\Z)))""",
    re.ASCII | re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_BLANK = re.compile(r"\s+")
_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?([\w-]+)""")


def read_html(data: bytes) -> ExtractionResult:
    """Make a section of each heading's own text and of each table, without spans.

    Raises:
        ExtractionError: the page is not text, has no visible text, is too large or too deeply nested, or a tag has
            too many attributes.
    """
    if len(data) > _LARGEST:
        raise ExtractionError(f"the page is larger than {_LARGEST:,} bytes")
    root = _parse(decode(data, find_declared_encoding(data)))
    reader = _PageReader()
    reader.read(root)
    if not (sections := reader.builder.build()):
        raise ExtractionError("the page contains no text")
    named = dict(_iterate_meta_tags(root))
    return ExtractionResult(
        sections=sections,
        title=to_one_line(root.findtext(".//title") or "") or reader.builder.headings.first,
        authors=parse_people([named["author"]] if "author" in named else []),
        created_at=_find_time(named, _CREATED),
        updated_at=_find_time(named, _UPDATED),
    )


def extract_html_sections(page: str) -> tuple[Section, ...]:
    """Extract the sections of HTML inside another document; none if it is empty.

    Raises:
        ExtractionError: the page is nested too deeply, or a tag has too many attributes.
    """
    if not page.strip():
        return ()
    reader = _PageReader()
    reader.read(_parse(page))
    return reader.builder.build()


def find_declared_encoding(data: bytes) -> str | None:
    """Return the encoding that the page itself declares."""
    match = _CHARSET.search(data[:4096].lower())
    return match[1].decode("ascii") if match else None


def _parse(page: str) -> HtmlElement:
    check_attributes(page)
    parser = html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = html.document_fromstring(page.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise ExtractionError("the page contains no text") from error
    if any("depth" in entry.message.lower() for entry in parser.error_log):
        raise ExtractionError("the page is nested too deeply")
    return root


def check_attributes(page: str) -> None:
    """Refuse a tag with very many attributes: libxml2 compares each with all before it, and cannot be interrupted.

    To be called with whatever libxml2 is to parse as HTML.

    Raises:
        ExtractionError: a tag of the page has too many.
    """
    if any(tag["more"] is not None for tag in _TAG.finditer(page)):
        raise ExtractionError(f"a tag has more than {_MOST_ATTRIBUTES:,} attributes")


def _iterate_meta_tags(root: HtmlElement) -> Iterator[tuple[str, str]]:
    for element in root.iter("meta"):
        name = element.get("name") or element.get("property") or element.get("http-equiv")
        if name and (content := to_one_line(element.get("content") or "")):
            yield name.lower(), content


def _find_time(named: dict[str, str], names: tuple[str, ...]) -> datetime | None:
    return next(filter(None, (parse_time(named.get(name, "")) for name in names)), None)


class _OpenList:
    """A list being read; `number` is that of the next item, None if items are not numbered."""

    def __init__(self, number: int | None) -> None:
        self.number = number

    def make_mark(self) -> str:
        if self.number is None:
            return "- "
        self.number += 1
        return f"{self.number - 1}. "


class _PageReader:
    """Collects the sections of a page."""

    def __init__(self) -> None:
        self.builder = SectionBuilder()
        self._text: list[str] = []
        self._lists: list[_OpenList] = []
        self._mark = ""
        self._open_pres = 0
        self._cells = SizeLimit(MOST_CELLS, f"it has more than {MOST_CELLS:,} cells")

    def read(self, root: HtmlElement) -> None:
        """Walk the tree without recursion: the parser allows very deep nesting."""
        steps = etree.iterwalk(root, events=("start", "end"))
        for event, element in steps:
            if event == "end":
                self._close_element(element)
            elif is_visible(element) and not self._add_table(element):
                self._open_element(element)
                continue
            else:
                steps.skip_subtree()
            self._append_text(element.tail)
        self._end_block()

    def _open_element(self, element: HtmlElement) -> None:
        if element.tag in _BLOCKS or element.tag in _HEADINGS:
            self._end_block()
        match element.tag:
            case "ul":
                self._lists.append(_OpenList(None))
            case "ol":
                start = element.get("start", "1")
                self._lists.append(_OpenList(int(start) if re.fullmatch(r"\d{1,9}", start) else 1))
            case "li" if self._lists:
                self._mark = self._lists[-1].make_mark()
            case "pre":
                self._open_pres += 1
            case "br":
                self._text.append("\n")
            case "img":
                self._append_text(element.get("alt"))
            case _:
                pass
        self._append_text(element.text)

    def _close_element(self, element: HtmlElement) -> None:
        tag = element.tag
        if tag in _HEADINGS:
            self.builder.add_heading(_HEADINGS[tag], self._flush_text())
        elif tag in _BLOCKS:
            self._end_block()
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._open_pres -= 1

    def _append_text(self, text: str | None) -> None:
        if text:
            self._text.append(text if self._open_pres else _BLANK.sub(" ", text))

    def _flush_text(self) -> str:
        text = "".join(self._text)
        self._text.clear()
        if self._open_pres:
            return text.strip("\n")
        return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()

    def _end_block(self) -> None:
        text = self._flush_text()
        if not text.strip():
            return
        if not self._lists:
            self.builder.add_paragraph(text)
            return
        indent = "  " * min(len(self._lists) - 1, _DEEPEST_INDENT)
        mark = self._mark or "  "
        self.builder.add_list_item(indent + mark + text.replace("\n", f"\n{indent}  "))
        self._mark = ""

    def _add_table(self, element: HtmlElement) -> bool:
        """Add a table of data; return False for any other element."""
        if element.tag != "table" or not (rows := extract_data_rows(element)):
            return False
        self._cells.add(sum(map(len, rows)))
        self._end_block()
        self.builder.add_paragraph(" ".join(map(get_visible_text, element.iter("caption"))))
        self.builder.add_table(format_grid(rows))
        return True
