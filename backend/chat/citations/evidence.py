"""Cut the chunks that a citation refers to into passages: sentences, and runs of up to three."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

from backend.chat.citations.fact_words import stem
from backend.chat.citations.facts import FUNCTION, Reading, read_text
from backend.chat.citations.negation import Clause, read_clauses
from connectors.document import Document, Span
from indexing.chunking.chunk import Chunk, split_sentences
from indexing.text.tokenizer import words

LONGEST_RUN = 3
"""Sentences that are compared with a claim as one text."""
_SPEAKER = regex.compile(r"(\p{Lu}[\w.'-]*+(?: \p{Lu}[\w.'-]*+){0,3}): ")
_ROW = regex.compile(r"\|")
_RULER = regex.compile(r"\|[\s:|-]+\|?")
_FUNCTION_STEMS = frozenset(map(stem, FUNCTION))


@dataclass(frozen=True)
class Passage:
    """A sentence of a section, or a run of neighboring ones."""

    text: str
    section: int
    """Number of the section in its document."""
    span: Span
    """Of `text` in that section."""
    above: str = ""
    """What the sentence is said of: title, headings, the header of its table."""
    speaker: str = ""
    """Who says it, in a conversation."""
    parts: tuple["Passage", ...] = ()
    """The sentences of a run."""

    @property
    def sentences(self) -> int:
        return len(self.parts) or 1

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words of the text and of the headings above it."""
        if self.parts:
            return frozenset[str]().union(*(part.words for part in self.parts))
        return content_words(f"{self.text}\n{self.above}\n{self.speaker}")

    @cached_property
    def reading(self) -> Reading:
        return read_text(self.text)

    @cached_property
    def reading_above(self) -> Reading:
        return _read_heading(f"{self.above}\n{self.speaker}")

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        return tuple(read_clauses(self.text))

    @property
    def text_in_context(self) -> str:
        above = ": ".join(part for part in (self.above, self.speaker) if part)
        return f"{above}: {self.text}" if above else self.text


@lru_cache(maxsize=512)
def _read_heading(text: str) -> Reading:
    """Read what stands above a sentence: it is the same for all sentences of a chunk."""
    return read_text(text)


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text as they are indexed, without function words."""
    return frozenset(words(text)) - _FUNCTION_STEMS


def split_passages(chunks: Sequence[Chunk]) -> list[Passage]:
    """Split chunks into sentences and runs of sentences; each chunk counts once."""
    once = {chunk.key: chunk for chunk in chunks}
    return [
        passage
        for chunk in once.values()
        for passage in _with_runs(
            chunk.text, _split(chunk.text, chunk.section, chunk.span.start, _heading(chunk))
        )
    ]


def split_document(document: Document) -> list[Passage]:
    """Split a whole document, as its chunks would be."""
    return [
        passage
        for number, section in enumerate(document.sections)
        for passage in _with_runs(
            section.text,
            _split(section.text, number, 0, _join(document.title, *section.place.heading_path)),
        )
    ]


def split_texts(title: str, texts: Sequence[str]) -> list[Passage]:
    """Split what was read of a source that is no document, such as a page of the web; each text is a section."""
    return [
        passage
        for number, text in enumerate(texts)
        for passage in _with_runs(text, _split(text, number, 0, title))
    ]


def _heading(chunk: Chunk) -> str:
    rows = [line for line in chunk.embedded_text.splitlines() if _ROW.match(line)]
    header = rows[:1] if _ROW.search(chunk.text) else []
    return _join(chunk.title, *chunk.heading_path, *header)


def _join(*parts: str) -> str:
    return " ".join(dict.fromkeys(part for part in parts if part))


def _split(text: str, section: int, start: int, above: str) -> Iterator[Passage]:
    speaker = ""
    for span in split_sentences(text):
        sentence = span.of(text)
        if named := _SPEAKER.match(sentence):
            speaker = named[1]
        if not _RULER.fullmatch(sentence):
            placed = Span(start + span.start, start + span.end)
            yield Passage(sentence, section, placed, above, speaker)


def _with_runs(text: str, sentences: Iterator[Passage]) -> Iterator[Passage]:
    singles = tuple(sentences)
    yield from singles
    if not singles:
        return
    offset = singles[0].span.start - text.find(singles[0].text)
    for length in range(2, LONGEST_RUN + 1):
        for at in range(len(singles) - length + 1):
            run = singles[at : at + length]
            span = Span(run[0].span.start, run[-1].span.end)
            whole = Span(span.start - offset, span.end - offset).of(text)
            yield Passage(whole, run[0].section, span, run[0].above, run[0].speaker, run)
