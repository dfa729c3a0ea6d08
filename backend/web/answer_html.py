"""An answer's Markdown as HTML that is safe in a page: no HTML of its own, nothing loaded.

Two walls: the Markdown is parsed with HTML switched off and only links that lead somewhere safe are
made; what comes out is cleaned once more by a list of what is allowed.
"""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from backend.chat.readable_ids import find_knowledge_page
from backend.schemas.answer import AnswerResponse, CitationResponse
from backend.web import urls
from backend.web.code_highlighting import CodeHighlighter
from backend.web.sanitizing import shorten
from backend.web_search.addresses import get_host
from connectors.document import Span
from connectors.text_cleaning import replace_controls

_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre"),
    *("ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td"),
    *("a", "sup", "span"),
}
_ATTRIBUTES = {
    "a": {"href", "class", "data-at", "data-verdict", "data-host", "aria-label", "target"},
    "ol": {"start"},
    "sup": {"class", "title"},
    "span": {"class"},
    **{f"h{level}": {"id"} for level in range(1, 7)},
}
_UNCITED = "\u2e2e\u2042"
"""Stands at the end of a sentence that cites nothing, until the Markdown is rendered: two characters of
punctuation, so that emphasis may end before them."""
_UNCITED_MARK = '<sup class="uncited" title="This sentence cites no document">no source</sup>'
_CITATION = re.compile(r"\s?\[{1,2}\d")
_NUMBER = re.compile(r"\[(\d{1,9})\]")
LONGEST = 500_000
"""Characters; of a longer answer only so many are taken as Markdown."""


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Accept every link, so that a citation of a file is known; `urls.elsewhere` decides."""
        del url
        return True


_MARKDOWN = (
    _Markdown("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("text_join")
)


def _forget_numbers(state: StateCore) -> None:
    """Drop definitions such as `[1]: address`: they would take the place of the links of citations."""
    defined = state.env.get("references", {})
    for number in [label for label in defined if label.isdigit()]:
        del defined[number]


_MARKDOWN.core.ruler.after("block", "forget_numbers", _forget_numbers)


def answer_html(answer: AnswerResponse) -> str:
    """Render an answer, its citations as links to the passages that they quote.

    A citation is `<a class="cite" data-at="N">`, where N is its place in `answer.citations`.
    """
    text = _mark_uncited(replace_controls(answer.answer), answer)
    html = render_tokens(_parse(text, _CitationsByNumber.of(answer.citations)))
    rest = text[LONGEST:].replace(_UNCITED, "")
    return html + (f"<p>{escape(rest)}</p>" if rest else "")


def parse_cited(text: str, citations: Sequence[CitationResponse]) -> list[Token]:
    """Return the tokens of Markdown in which each `[n]` with the number of a citation is one; at most `LONGEST` characters are read.

    A citation is as in `answer_html`. Render them by `render_tokens`.
    """
    return _parse(replace_controls(text), _CitationsByNumber.of_markers(citations))


def _parse(text: str, cited: "_CitationsByNumber") -> list[Token]:
    tokens = _MARKDOWN.parse(text[:LONGEST])
    for token in tokens:
        if token.children:
            token.children = list(_inline(token.children, cited))
    return tokens


def render_tokens(tokens: Sequence[Token]) -> str:
    """Return clean HTML."""
    options = deepcopy(_MARKDOWN.options)
    options["highlight"] = CodeHighlighter().highlight
    rendered = _MARKDOWN.renderer.render(tokens, options, {})
    return sanitize(rendered).replace(_UNCITED, "")


def _mark_uncited(text: str, answer: AnswerResponse) -> str:
    """Mark the sentences that cite nothing, unless that is true of the whole answer."""
    text = text.replace(_UNCITED, "")
    parts: list[str] = []
    at = 0
    for sentence in answer.uncited if answer.citations else ():
        if end := _find_sentence(text, sentence, at):
            parts += [text[at:end], _UNCITED]
            at = end
    return "".join([*parts, text[at:]])


def _find_sentence(text: str, sentence: str, start: int) -> int | None:
    """Return where the first occurrence that no citation follows ends; of a table row, before its last bar."""
    words = replace_controls(sentence).removesuffix("|").split()
    for found in re.compile(r"\s+".join(map(re.escape, words))).finditer(text, start):
        if not _CITATION.match(text, found.end()):
            return found.end()
    return None


def sanitize(html: str) -> str:
    """Keep only allowed tags and attributes; links send no referrer, and vouch for nothing."""
    return nh3.clean(
        html,
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


@dataclass(frozen=True, slots=True)
class _CitationsByNumber:
    """The citations by their numbers; those of one number are taken in the order of the text."""

    waiting: Mapping[int, deque[tuple[int, CitationResponse]]]
    last: dict[int, tuple[int, CitationResponse]] = field(default_factory=dict)
    by_marker: Collection[int] = ()
    """Numbers that `[n]` alone cites, wherever they lead."""

    @classmethod
    def of(cls, citations: Sequence[CitationResponse]) -> "_CitationsByNumber":
        waiting: dict[int, deque[tuple[int, CitationResponse]]] = {}
        for at, citation in enumerate(citations):
            waiting.setdefault(citation.number, deque()).append((at, citation))
        return cls(waiting)

    @classmethod
    def of_markers(cls, citations: Sequence[CitationResponse]) -> "_CitationsByNumber":
        return replace(cls.of(citations), by_marker={one.number for one in citations})

    def take_marker(self, number: int) -> tuple[int, CitationResponse] | None:
        """Take the citation that `[n]` without a link stands for, if it stands for one."""
        waiting = self.waiting.get(number)
        is_citation = number in self.by_marker or (waiting and not waiting[0][1].link)
        return self.take(number) if is_citation else None

    def take(self, number: int) -> tuple[int, CitationResponse] | None:
        if waiting := self.waiting.get(number):
            self.last[number] = waiting.popleft()
        return self.last.get(number)


def _inline(children: Sequence[Token], cited: _CitationsByNumber) -> Iterator[Token]:
    at = 0
    led: list[bool] = []  # of the links that are open, whether they lead somewhere
    while at < len(children):
        token = children[at]
        link = children[at : at + 3]
        if token.type == "link_open" and (chip := _citation_link(link, cited)):
            yield chip
            at += len(link)
            continue
        match token.type:
            case "image":
                yield from _image(token)
            case "link_open":
                target = _link_target(token)
                led.append(target is not None)
                if target:
                    yield _html(_open_link(target))
            case "link_close":
                if led.pop():
                    yield _html("</a>")
            case "text":
                yield from _text(token, cited)
            case "text_special":
                # Brackets that are escaped are no citation, so that they must not be joined with their neighbors.
                yield _plain(token.content)
            case _:
                yield token
        at += 1


def _citation_link(link: Sequence[Token], cited: _CitationsByNumber) -> Token | None:
    """Return the chip for `[[n]](target)`, where n is cited."""
    if [token.type for token in link] != ["link_open", "text", "link_close"]:
        return None
    found = _NUMBER.fullmatch(link[1].content)
    taken = cited.take(int(found[1])) if found else None
    return _chip(*taken) if taken else None


def _text(token: Token, cited: _CitationsByNumber) -> Iterator[Token]:
    """Yield plain text; `[n]` in it is a citation of a document that has no link of its own."""
    for place, content in enumerate(token.content.split(_UNCITED)):
        if place:
            yield _html(_UNCITED_MARK)
        yield from _numbered(content, cited)


def _numbered(content: str, cited: _CitationsByNumber) -> Iterator[Token]:
    at = 0
    for found in _NUMBER.finditer(content):
        if taken := cited.take_marker(int(found[1])):
            yield _plain(content[at : found.start()])
            yield _chip(*taken)
            at = found.end()
    yield _plain(content[at:])


def _chip(at: int, citation: CitationResponse) -> Token:
    label = f"Source {citation.number}: {shorten(citation.title, 120)}"
    return _html(
        f'<a class="cite" {_lead_to(citation)} data-at="{at}" data-verdict="{citation.verdict}"'
        f' aria-label="{escape(label)}">{citation.number}</a>'
    )


def _lead_to(citation: CitationResponse) -> str:
    """Return the attributes that lead to a source: a page of the web opens beside this one."""
    match citation.kind:
        case "url":
            target, host = urls.elsewhere(citation.link) or "", get_host(citation.link) or ""
            return f'href="{escape(target)}" target="_blank" data-host="{escape(host)}"'
        case "memory":
            return f'href="{urls.MEMORIES}"'
        case "research":
            return f'href="{escape(find_knowledge_page(citation.document_id))}"'
        case "document" | "file" | "image":
            span = Span(*citation.span) if citation.quote else None
            href = urls.document(citation.document_id, citation.section, span)
            return f'href="{escape(href)}"'


def _image(token: Token) -> Iterator[Token]:
    """Yield the description of an image, linked to its address: loading a picture would reveal who reads it."""
    target = urls.elsewhere(str(token.attrGet("src") or ""))
    label = token.content or "image"
    yield _html(_open_link(target) + escape(label) + "</a>" if target else escape(label))


def _link_target(link: Token) -> str | None:
    """Return where a link leads, if that is somewhere safe; of any other only the text is left."""
    href = str(link.attrGet("href") or "")
    return href if href.startswith("#") else urls.elsewhere(href)


def _open_link(target: str) -> str:
    aside = "" if target.startswith("#") else ' target="_blank"'
    return f'<a href="{escape(target)}"{aside}>'


def _plain(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _html(html: str) -> Token:
    return Token("html_inline", "", 0, content=html)
