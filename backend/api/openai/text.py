"""The text of an answer as programs for OpenAI's API read it: plain markers, and where each stands."""

import re
from collections.abc import Iterator, Sequence

from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.document_addresses import SourceAddresses
from backend.chat.events import AnswerDone, ChatEvent, TextPiece
from backend.chat.passages import REASON_TEXTS, PassagesReason, PassagesShown, QuotedPassage
from backend.schemas.openai_completion import FinishReason, UrlCitation
from indexing.embedding.token_counting import CountTokens
from indexing.text.markdown_links import escape_markdown

MOST_QUOTED = 3
_LINK = r"\[\[(\d+)\]\]\([^()\s]*\)|\[(\d+)\]"
_LINKS = re.compile(rf" ?(?:{_LINK})(?: (?:{_LINK}))*")
_EACH_LINK = re.compile(_LINK)
_AFTER_MARKER = ("(", ":")
"""With these a marker would become a link, or define one."""
_WORD = re.compile(r"\s*\S+|\s+")
_SAID_AFTER = {
    PassagesReason.BUDGET_USED,
    PassagesReason.GROUP_BUDGET_USED,
    PassagesReason.SHARED_BUDGET_USED,
    PassagesReason.MODEL_BROKE_OFF,
}
"""What the text of an answer does not say by itself."""
_QUOTED_AFTER = {
    PassagesReason.MODEL_FAILED,
    PassagesReason.MODEL_REFUSED,
    PassagesReason.MODEL_BROKE_OFF,
}


class AnswerText:
    """Grows with the events of a turn."""

    def __init__(self, addresses: SourceAddresses) -> None:
        self._addresses = addresses
        self._cited: dict[int, CitationInfo | QuotedPassage] = {}
        self._shown: PassagesShown | None = None
        self._citations: list[UrlCitation] = []
        self._length = 0
        self._ends_with_marker = False

    def add(self, event: ChatEvent) -> str:
        """Take an event, and return the text that it adds."""
        match event:
            case CitationInfo(number=number):
                self._cited[number] = event
            case PassagesShown():
                self._shown = event
            case TextPiece(text=text):
                return "".join(self._write(text))
            case AnswerDone():
                return "".join(self._write_end())
            case _:
                pass
        return ""

    def citations(self, length: int) -> tuple[UrlCitation, ...]:
        """Return those in the first characters of the text, so many."""
        return tuple(one for one in self._citations if one.end_index <= length)

    def _write(self, text: str) -> Iterator[str]:
        numbers = self._read_links(text)
        if not numbers:
            yield self._put(text)
            return
        if text.startswith(" "):
            yield self._put(" ")
        for number in numbers:
            yield self._mark(number)

    def _read_links(self, text: str) -> list[int]:
        """Return the numbers of a piece that is nothing but links of citations."""
        if not _LINKS.fullmatch(text):
            return []
        numbers = [int(one or other) for one, other in _EACH_LINK.findall(text)]
        return numbers if self._cited.keys() >= set(numbers) else []

    def _put(self, text: str) -> str:
        if self._ends_with_marker and text.startswith(_AFTER_MARKER):
            text = f"\\{text}"
        if text:
            self._ends_with_marker = False
            self._length += len(text)
        return text

    def _mark(self, number: int) -> str:
        marker, source = f"[{number}]", self._cited[number]
        start, self._length = self._length, self._length + len(marker)
        self._ends_with_marker = True
        citation = UrlCitation(
            start_index=start,
            end_index=self._length,
            url=self._addresses.find(source),
            title=source.title,
        )
        self._citations.append(citation)
        return marker

    def _write_end(self) -> Iterator[str]:
        """Write what other clients show beside the text: why no language model has written it, and passages."""
        if self._shown is None:
            return
        reason = self._shown.reason
        if reason in _SAID_AFTER:
            yield self._put(f"\n\n{REASON_TEXTS[reason]}")
        if reason in _QUOTED_AFTER:
            for passage in self._shown.passages[:MOST_QUOTED]:
                yield from self._quote(passage)

    def _quote(self, passage: QuotedPassage) -> Iterator[str]:
        self._cited.setdefault(passage.number, passage)
        quoted = escape_markdown("".join(run.text for run in passage.runs))
        yield self._put(f"\n\n> {quoted} ")
        yield self._mark(passage.number)


class TextLimit:
    """Where a client wants an answer to end: before one of some texts, or after so many tokens."""

    def __init__(
        self, stops: Sequence[str], most_tokens: int | None, count_tokens: CountTokens
    ) -> None:
        self._stops = stops
        self._most_tokens = most_tokens
        self._count_tokens = count_tokens
        self._held = ""
        self._tokens = 0
        """Of the lines that are complete."""
        self._line = ""
        self.length = 0
        """Characters that were let through."""
        self.reached: FinishReason | None = None

    def take(self, text: str) -> str:
        """Take more of an answer, and return what may be sent of it: what may begin a stop is held back."""
        self._held += text
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.reached = "stop"
            return self._pass_on(min(found))
        return self._pass_on(len(self._held) - self._measure_beginning())

    def end(self) -> str:
        """Return what was held back, as nothing follows."""
        return self._pass_on(len(self._held))

    def _measure_beginning(self) -> int:
        """Return the length of the end of the text with which a stop may begin."""
        lengths = (
            length
            for stop in self._stops
            for length in range(min(len(stop) - 1, len(self._held)), 0, -1)
            if self._held.endswith(stop[:length])
        )
        return max(lengths, default=0)

    def _pass_on(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        text = self._fit(text)
        self.length += len(text)
        return text

    def _fit(self, text: str) -> str:
        if self._most_tokens is None:
            return text
        if not self._fits(text):
            self.reached = "length"
            return self._take_words(text)
        complete, end, self._line = (self._line + text).rpartition("\n")
        self._tokens += self._count_tokens(complete + end) if end else 0
        return text

    def _fits(self, text: str) -> bool:
        used = self._tokens + self._count_tokens(self._line + text)
        return self._most_tokens is None or used <= self._most_tokens

    def _take_words(self, text: str) -> str:
        taken = ""
        for word in _WORD.findall(text):
            if not self._fits(taken + word):
                break
            taken += word
        return taken
