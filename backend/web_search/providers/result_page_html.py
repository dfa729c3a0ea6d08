"""Results in the HTML of a result page, whatever its engine: links to other sites that stand as titles, and the text beside them.

The titles are the links that are headings; on a page without such links, those that look alike most often.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lxml.html import HtmlElement

from backend.web_search.providers.result_links import Target, resolve_target
from backend.web_search.result_cleaning import to_plain_text
from backend.web_search.results import WebResult
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import parse_html

_HEADINGS = {"h1", "h2", "h3", "h4"}
_AROUND = {"nav", "header", "footer", "aside", "form", "template", "noscript"}
"""What stands around the results."""
_UNREAD = {"script", "style", "cite", "noscript", "svg", "button", "template", "select", "textarea"}
_BLOCKS = _HEADINGS | {
    "div",
    "p",
    "li",
    "ul",
    "ol",
    "td",
    "tr",
    "table",
    "br",
    "section",
    "article",
}
_BLOCKS |= {"dd", "dt", "dl", "blockquote", "h5", "h6", "a"}
_AD = re.compile(
    r"(^|[\s_-])(ads?|advert(isement)?s?|sponsored|promoted|promo)($|[\s_-])", re.IGNORECASE
)
_AD_LABEL = re.compile(
    r"(ads?|sponsored|promoted|anzeigen?|werbung|gesponsert|annonces?|anuncios?|广告|廣告|広告|スポンサー)\W*",
    re.IGNORECASE,
)
_ADDRESS_CLASS = re.compile(
    r"(^|[\s_-])(url|uri|cite|breadcrumbs?|displayurl|domain|host|path)($|[\s_-])", re.I
)
_ADDRESS = re.compile(r"(https?://|www\.)?[\w-]+(\.[\w-]+)+(\s*[/›>»·].*)?", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_FEWEST_WORDS = 3
"""Of a summary; fewer are a label."""
_SHORTEST_WIDE_SUMMARY = 8
"""Characters, in scripts without blanks between words."""
_FEWEST_ALIKE = 2
_SHORTEST_TITLE = 2
_MOST_LINKS = 1_000
_MOST_RESULTS = 50
_MOST_AROUND = 12
"""Elements around a title, and as many after it, in which its summary is looked for."""
_MOST_PIECES = 1_000
"""Of the text of an element. The page is read in this process: what it costs is bounded, whatever is in it."""


@dataclass(frozen=True, slots=True)
class _Link:
    element: HtmlElement
    target: Target
    text: str
    is_heading: bool


def read_result_page(html: str, page_url: str, provider: str) -> list[WebResult]:
    """Return the results of a page in their order; none of a page that has none, or is no result page."""
    tree = _parse(html)
    if tree is None:
        return []
    titles = _choose_titles(list(islice(_find_links(tree, page_url), _MOST_LINKS)))
    reader = _SummaryReader([link.element for link in titles])
    found = ((link, reader.read_blocks(link.element)) for link in titles[:_MOST_RESULTS])
    return [
        WebResult(link.text, link.target.url, _choose_summary(blocks), None, provider)
        for link, blocks in found
        if not any(map(_AD_LABEL.fullmatch, blocks))
    ]


def _parse(html: str) -> HtmlElement | None:
    try:
        return parse_html(html)
    except ExtractionError:
        return None


def _find_links(tree: HtmlElement, page_url: str) -> Iterator[_Link]:
    around = _find_around(tree)
    for element in tree.iter("a"):
        if not element.get("href") or element in around:
            continue
        heading = _find_heading(element)
        text = to_plain_text((element if heading is None else heading).text_content())
        target = resolve_target(element, page_url)
        if target is None or len(text) < _SHORTEST_TITLE or _ADDRESS.fullmatch(text):
            continue
        if heading is not None or not target.is_of_engine:
            yield _Link(element, target, text, heading is not None)


def _find_around(tree: HtmlElement) -> set[HtmlElement]:
    """Return what stands outside of the results, in an advertisement, or is not seen, with all that is in it."""
    found: set[HtmlElement] = set()
    for each in tree.iter():
        if each.getparent() in found or _is_around(each):
            found.add(each)
    return found


def _is_around(element: HtmlElement) -> bool:
    return bool(
        element.tag in _AROUND
        or element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or element.get("data-text-ad") is not None
        or _HIDDEN.search(element.get("style", ""))
        or (
            element.tag not in {"body", "html"}
            and _AD.search(f"{element.get('class', '')} {element.get('id', '')}")
        )
    )


def _find_heading(link: HtmlElement) -> HtmlElement | None:
    """Return the heading within a link, or the link where it is in a heading."""
    outer = list(islice(link.iterancestors(), 3))
    for each in (*link.iterdescendants(), *outer):
        if each.tag in _HEADINGS or each.get("role") == "heading":
            return link if each in outer else each
    return None


def _choose_titles(links: Sequence[_Link]) -> list[_Link]:
    headings = [link for link in links if link.is_heading]
    if len(headings) >= _FEWEST_ALIKE:
        return _drop_repeated(headings)
    alike: defaultdict[tuple[str, ...], list[_Link]] = defaultdict(list)
    for link in links:
        alike[_describe_place(link.element)].append(link)
    groups = [_drop_repeated(group) for group in alike.values()]
    # Titles are longer than what stands beside them in the same number, such as links to copies.
    most = max(
        groups, key=lambda group: (len(group), sum(len(one.text) for one in group)), default=[]
    )
    return most if len(most) >= _FEWEST_ALIKE else headings


def _describe_place(element: HtmlElement) -> tuple[str, ...]:
    parent = element.getparent()
    around = () if parent is None else (str(parent.tag), parent.get("class", ""))
    return (element.get("class", ""), *around)


def _drop_repeated(links: Sequence[_Link]) -> list[_Link]:
    """Keep the first link to each address: a picture or a summary may lead there, too."""
    return list({link.target.url: link for link in reversed(links)}.values())[::-1]


class _SummaryReader:
    """Reads what stands beside a title, and beside no other."""

    def __init__(self, titles: Sequence[HtmlElement]) -> None:
        self._titles = set(titles)
        self._counts = Counter(each for title in titles for each in title.iterancestors())
        """How many titles each element holds."""

    def read_blocks(self, title: HtmlElement) -> list[str]:
        """Return the texts near a title: of the smallest element around it that has a summary."""
        blocks: list[str] = []
        around = title
        for each in islice(title.iterancestors(), _MOST_AROUND):
            if self._counts[each] > 1 or each.tag in {"body", "html"}:
                break
            around, blocks = each, _list_blocks(each, title)
            if _choose_summary(blocks):
                return blocks
        return blocks + self._read_following(around)

    def _read_following(self, around: HtmlElement) -> list[str]:
        """Return the texts up to the next title: where results are rows of a table, each has several."""
        blocks: list[str] = []
        for each in islice(around.itersiblings(), _MOST_AROUND):
            if self._counts[each] or each in self._titles:
                break
            blocks += _list_blocks(each, None)
        return blocks


def _choose_summary(blocks: Sequence[str]) -> str:
    """Return the longest text, unless none is longer than a label."""
    longest = max(blocks, key=len, default="")
    is_wide = len(longest.encode()) > 2 * len(longest)
    has_words = len(longest.split()) >= _FEWEST_WORDS
    return longest if has_words or (is_wide and len(longest) >= _SHORTEST_WIDE_SUMMARY) else ""


def _list_blocks(element: HtmlElement, title: HtmlElement | None) -> list[str]:
    """Return the texts of an element, block by block, without its title and the address that is shown."""
    pieces: list[str] = []
    _collect(element, title, pieces)
    blocks = (to_plain_text(text) for text in "".join(pieces).split("\0"))
    return [text for text in blocks if text and not _ADDRESS.fullmatch(text)]


def _collect(element: HtmlElement, title: HtmlElement | None, pieces: list[str]) -> None:
    for text, child in _walk(element):
        if len(pieces) > _MOST_PIECES:
            return
        if child is not None and child is not title and not _is_unread(child):
            edge = "\0" if child.tag in _BLOCKS else ""
            pieces.append(edge)
            _collect(child, title, pieces)
            pieces.append(edge)
        pieces.append(text)


def _walk(element: HtmlElement) -> Iterator[tuple[str, HtmlElement | None]]:
    """Yield the texts of an element, each with the child before it."""
    yield element.text or "", None
    for child in element:
        yield child.tail or "", child


def _is_unread(element: HtmlElement) -> bool:
    return (
        not isinstance(element.tag, str)
        or element.tag in _UNREAD
        or bool(_ADDRESS_CLASS.search(element.get("class", "")))
        or bool(_HIDDEN.search(element.get("style", "")))
    )
