"""A conversation as one Markdown document: questions, answers, and at the end every source once, under one number.

What others wrote stays where it stands: no title, question or answer can load a picture, bring HTML, change where a number leads,
or run on into what follows it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Any, TypeAlias

from markdown_it import MarkdownIt

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.document_addresses import quote_id
from backend.chat.events import GENERAL_KNOWLEDGE
from backend.chat.passages import KEPT_REASON_TEXTS, TEXTS_INSTEAD, PassagesReason
from backend.chat.readable_ids import find_knowledge_page
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.failed_steps import describe_failed_step
from backend.conversations.sharing import ReadConversation, ReadMessage
from backend.conversations.turn_events import NOTICES
from connectors.text_cleaning import replace_controls
from indexing.text.markdown_links import escape_markdown, safe_link

EARLIER = "Earlier messages are not shown."
_BROKE_OFF = "The language model did not finish this answer."
_REASONS: Mapping[str, str] = MappingProxyType(
    {
        PassagesReason.BUDGET_USED: KEPT_REASON_TEXTS[PassagesReason.BUDGET_USED],
        PassagesReason.GROUP_BUDGET_USED: KEPT_REASON_TEXTS[PassagesReason.GROUP_BUDGET_USED],
        PassagesReason.SHARED_BUDGET_USED: KEPT_REASON_TEXTS[PassagesReason.SHARED_BUDGET_USED],
        PassagesReason.WITHOUT_MODEL: KEPT_REASON_TEXTS[PassagesReason.WITHOUT_MODEL],
        PassagesReason.MODEL_BROKE_OFF: _BROKE_OFF,
    }
)
"""Why passages were shown, where the text does not say it; the passages themselves are not exported."""
_WEB = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
_MARKER = re.compile(r"\[\[(\d{1,9})\]\]\(([^()\s]*)\)|(?<![\\\[])\[(\d{1,9})\](?![(\[\]])")
_CODE = re.compile(r"\\[^\n]|(?P<ticks>`+)(?P<code>[^\n]*?(?<!`)(?P=ticks)(?!`))?")
"""An escaped character; backticks, and perhaps the code that they begin."""
_MARKUP = re.compile(
    r"(?P<escapes>\\*)(?P<mark><|!(?=\[)|(?<=\]):)"  # HTML; a picture; where a word in brackets leads
)
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
_HTML_PARSER = MarkdownIt("commonmark").enable("table")
_END = "end of the answer"
_NOTHING = re.compile(r"(?!)(?P<code>)")

Translate: TypeAlias = Callable[[str], str]
"""Returns a text that is written here in the language of a reader."""


@dataclass(frozen=True, slots=True)
class _Source:
    title: str
    link: str


@dataclass(frozen=True, slots=True)
class _Sources:
    """Those of a document, in the order in which they are first cited."""

    server: str
    """Where readers reach Quarry, such as https://quarry.example.com."""
    numbers: dict[str, int] = field(default_factory=dict)
    found: list[_Source] = field(default_factory=list)

    def number(self, citation: Mapping[str, Any]) -> int:
        document_id = citation["document_id"]
        if document_id not in self.numbers:
            self.numbers[document_id] = len(self.found) + 1
            self.found.append(_Source(citation["title"], self._find_link(citation)))
        return self.numbers[document_id]

    def _find_link(self, citation: Mapping[str, Any]) -> str:
        """Return where a source is on the web; of any other its page in Quarry."""
        document_id, link = citation["document_id"], citation["link"].strip()
        if _WEB.match(link):
            return safe_link(link)
        if citation.get("kind") == SourceKind.MEMORY:
            return f"{self.server.rstrip('/')}/memories"
        if citation.get("kind") == SourceKind.RESEARCH:
            return f"{self.server.rstrip('/')}{find_knowledge_page(document_id)}"
        return f"{self.server.rstrip('/')}/document/{quote_id(document_id)}"

    def write(self, translate: Translate) -> list[str]:
        if not self.found:
            return []
        untitled = translate("Untitled")
        lines = [
            f"{number}. [{_on_one_line(one.title) or untitled}]({one.link})"
            for number, one in enumerate(self.found, start=1)
        ]
        return [f"## {translate('References')}", "\n".join(lines)]


def export_markdown(read: ReadConversation, server: str, translate: Translate) -> str:
    """Return a conversation as its reader may see it; headings and notices in the language of the reader."""
    sources = _Sources(server)
    blocks = [f"# {_on_one_line(read.title)}"]
    if read.has_earlier:
        blocks.append(f"*{translate(EARLIER)}*")
    for one in read.messages:
        blocks += (
            _write_question(one, translate)
            if one.message.role == "user"
            else _write_answer(one, sources, translate)
        )
    return "\n\n".join([*blocks, *sources.write(translate)]) + "\n"


def _write_question(one: ReadMessage, translate: Translate) -> list[str]:
    lines = [_on_one_line(line) for line in one.message.text.splitlines()]
    return [
        f"## {translate('Question')}",
        "\n".join(f"> {line}  " if line else ">" for line in lines),
    ]


def _write_answer(one: ReadMessage, sources: _Sources, translate: Translate) -> list[str]:
    heading = f"## {translate('Answer')}"
    if one.withheld:
        return [heading, f"*{translate(WITHHELD)}*"]
    answer = one.message.answer or {}
    said = one.message.text
    if said in TEXTS_INSTEAD:
        said = translate(said)
    text = _write_text(said, answer, sources)
    notices = (
        _REASONS.get(answer.get("passages_reason") or ""),
        GENERAL_KNOWLEDGE if answer.get("general_knowledge") else None,
        NOTICES.get(one.message.status or ""),
    )
    said_of_it = [f"*{translate(each)}*" for each in notices if each]
    lost = [describe_failed_step(loss["step"], loss["reason"]) for loss in one.message.losses]
    said_of_it += [f"*{_on_one_line(translate(each))}*" for each in lost]
    return [heading, *([text] if text else []), *said_of_it]


def _write_text(text: str, answer: Mapping[str, Any], sources: _Sources) -> str:
    """Return the text of an answer with the numbers of this document, shut off from what follows it."""
    cited = {one["number"]: one for one in answer.get("citations", ())}
    closed = _close("\n".join(replace_controls(text).splitlines()).strip("\n"))

    def write(pattern: re.Pattern[str]) -> str:
        return "\n".join(
            run if is_code else _write_prose(run, pattern, cited, sources)
            for is_code, run in _group_lines(closed)
        )

    written = write(_CODE)
    # What looks like code in a line may be none, such as across the cells of a table.
    return written if _is_harmless(written) else write(_NOTHING)


def _group_lines(text: str) -> list[tuple[bool, str]]:
    """Return runs of lines that are blocks of code, and of those that are none."""
    verbatim = _find_verbatim_lines(text)
    runs = groupby(enumerate(text.split("\n")), lambda one: one[0] in verbatim)
    return [(is_code, "\n".join(line for _, line in run)) for is_code, run in runs]


def _is_harmless(markdown: str) -> bool:
    """Return whether it holds no HTML and no picture."""
    tokens = _HTML_PARSER.parse(markdown)
    found = {one.type for token in tokens for one in (token, *(token.children or ()))}
    return found.isdisjoint({"html_block", "html_inline", "image"})


def _write_prose(
    text: str,
    code_pattern: re.Pattern[str],
    cited: Mapping[int, Mapping[str, Any]],
    sources: _Sources,
) -> str:
    parts: list[str] = []
    at = 0
    for found in code_pattern.finditer(text):
        if found["code"] is not None:
            parts += [_write_words(text[at : found.start()], cited, sources), found.group()]
            at = found.end()
    return "".join([*parts, _write_words(text[at:], cited, sources)])


def _write_words(text: str, cited: Mapping[int, Mapping[str, Any]], sources: _Sources) -> str:
    parts: list[str] = []
    at = 0
    for found in _MARKER.finditer(text):
        citation = cited.get(int(found[1] or found[3]))
        # A number in single brackets is a citation only of a document that has no link.
        if found[3] and (citation is None or citation["link"]):
            continue
        # Of an answer that is stored without its citations, the sources are not known.
        marker = f"[{sources.number(citation)}]" if citation else ""
        escape = "\\" if marker and text[found.end() : found.end() + 1] in ("(", ":") else ""
        before = text[at : found.start()]
        parts += [_disarm(before if marker else before.removesuffix(" ")), marker, escape]
        at = found.end()
    return "".join([*parts, _disarm(text[at:])])


def _disarm(text: str) -> str:
    return _MARKUP.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    is_escaped = len(found["escapes"]) % 2 == 1
    return found.group() if is_escaped else f"{found['escapes']}\\{found['mark']}"


def _find_verbatim_lines(text: str) -> frozenset[int]:
    """Return the lines of blocks of code."""
    return frozenset(
        line
        for token in _PARSER.parse(text)
        if token.type in ("fence", "code_block") and token.map
        for line in range(*token.map)
    )


def _close(text: str) -> str:
    """End a block of code that is open at the end, so that it takes in nothing of what follows."""
    tokens = _PARSER.parse(f"{text}\n\n{_END}")
    return f"{text}\n{tokens[-1].markup}" if tokens[-1].type == "fence" else text


def _on_one_line(text: str) -> str:
    return escape_markdown(" ".join(replace_controls(text).split()))
