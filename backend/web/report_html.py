"""A report of research as HTML that is safe in a page: citations as links, headings with places to which an outline leads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token
from markupsafe import Markup

from backend.schemas.answer import CitationResponse
from backend.web.answer_html import parse_cited, render_tokens
from backend.web.sanitizing import shorten

_FIRST_LEVEL = 3
"""Of headings: the page and the part of it in which a report stands have their own."""
_LAST_LEVEL = 6
_LONGEST_HEADING = 120
_BREAKS = {"softbreak", "hardbreak"}
_SAID = {"text", "text_special", "code_inline", *_BREAKS}
"""Kinds of tokens that have a part in the words of a heading."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A line of an outline."""

    place: str
    """The id of the element."""
    depth: int
    """0 for the outermost; never more than one deeper than the heading before."""
    text: str


@dataclass(frozen=True, slots=True)
class CitedHtml:
    html: Markup
    """Cleaned, so that a template shows it as it is. A citation is `<a class="cite" data-at="N">`, where N is its place among the citations."""
    headings: tuple[Heading, ...]


def report_html(text: str, citations: Sequence[CitationResponse], place: str) -> CitedHtml:
    """Render Markdown with markers `[n]`.

    Args:
        place: with what the ids of its headings begin.
    """
    tokens = parse_cited(text, citations)
    headings = tuple(_place_headings(tokens, place))
    return CitedHtml(Markup(render_tokens(tokens)), headings)


def _place_headings(tokens: Sequence[Token], place: str) -> Iterator[Heading]:
    """Give each heading its id, and a level at which none is skipped; one without words is a paragraph, which no outline leads to."""
    above: list[int] = []
    for at, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        text = _read_text(tokens[at + 1])
        if not text:
            token.tag = tokens[at + 2].tag = "p"
            continue
        level = int(token.tag[1:])
        while above and above[-1] >= level:
            above.pop()
        heading = Heading(f"{place}-{at}", len(above), text)
        above.append(level)
        token.attrSet("id", heading.place)
        token.tag = tokens[at + 2].tag = f"h{min(_FIRST_LEVEL + heading.depth, _LAST_LEVEL)}"
        yield heading


def _read_text(inline: Token) -> str:
    """Return the words of a heading without its citations."""
    children = inline.children or ()
    written = (" " if one.type in _BREAKS else one.content for one in children if one.type in _SAID)
    return shorten(" ".join("".join(written).split()), _LONGEST_HEADING)
