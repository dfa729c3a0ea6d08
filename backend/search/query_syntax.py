"""Understand what a person types into a search box: quoted phrases, excluded words and filters; and misspellings.

    "two weeks"         every result contains the phrase
    -draft, -"old plan" no result contains the word or the phrase
    source:handbook     filters; a value with spaces is quoted: person:"Ines Almqvist"
    set:policies        a document set, by its name
    type:pdf            a name of `media_type_labels`, or a media type such as text/plain
    after:2026-03       updated in March 2026 or later
    before:2026         updated before 2026

Whatever has the form of an operator but no meaning, such as `before:lunch`, stays part of the text, and a note says so.
So do quotes and dashes in a long text: it was pasted, and they are its punctuation.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

import regex

from backend.search import media_type_labels
from backend.search.models import SearchRequest
from connectors.document import Span
from indexing.index.protocols import LABEL_SIGN, DateRange, Filters, Index, TextConditions
from indexing.index.spelling import correct_message, spelling_query
from indexing.text.tokenizer import Quote, find_quotes, plain_words


class OperatorKind(StrEnum):
    PHRASE = "phrase"
    EXCLUDED = "excluded"
    SOURCE = "source"
    SET = "set"
    TYPE = "type"
    PERSON = "person"
    BEFORE = "before"
    AFTER = "after"


_KEYS = "|".join(kind for kind in OperatorKind if kind not in (OperatorKind.PHRASE, "excluded"))
_PREFIX = regex.compile(rf"(?i)(?<!\S)(?:-|(?P<key>{_KEYS}):)$")
_BARE = regex.compile(rf"(?i)(?<!\S)(?:-(?=\p{{L}})|(?P<key>{_KEYS}):)(?P<value>\S+)")
_DAY = regex.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
LONGEST_TYPED_QUERY = 500
"""Characters. What is longer is text that was pasted: its quotes, dates and rare words mean nothing to a search."""
_LONGEST_PREFIX = len("-") + max(map(len, OperatorKind)) + len(":")
_BLANK = "\N{NO-BREAK SPACE}"
"""Takes the place of what has been read: no operator begins in the middle of another's value."""


@dataclass(frozen=True, slots=True)
class QueryOperator:
    kind: OperatorKind
    value: str
    span: Span
    """In the query of which it is a part."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    query: str
    """As it was typed, in one line."""
    operators: tuple[QueryOperator, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about what was not understood."""

    @property
    def text(self) -> str:
        """What is searched: the query without its filters and exclusions, with its phrases."""
        removed = [one for one in self.operators if one.kind is not OperatorKind.PHRASE]
        return remove_spans(self.query, [one.span for one in removed])

    @property
    def without_quotes(self) -> str:
        """The query without the marks of its phrases, which then need not be held."""
        query = self.query
        for one in reversed(self.operators):
            if one.kind is OperatorKind.PHRASE:
                query = query[: one.span.start] + one.value + query[one.span.end :]
        return query

    def values(self, kind: OperatorKind) -> tuple[str, ...]:
        return tuple(one.value for one in self.operators if one.kind is kind)

    def without(self, operator: QueryOperator) -> str:
        """Return the query without one of its operators."""
        return remove_spans(self.query, [operator.span])

    def filters(self, people: frozenset[str]) -> Filters:
        """Return the filters among the operators.

        Args:
            people: the keys of those whom the query names.
        """
        named = self.values(OperatorKind.PERSON)
        return Filters(
            sources=_set(self.values(OperatorKind.SOURCE)),
            sets=_set(self.values(OperatorKind.SET)),
            media_types=_set(map(media_type_labels.media_type, self.values(OperatorKind.TYPE))),
            people=people if named else None,
            updated=DateRange(
                max(self._moments(OperatorKind.AFTER), default=None),
                min(self._moments(OperatorKind.BEFORE), default=None),
            ),
        )

    @property
    def conditions(self) -> TextConditions:
        return TextConditions(self.values(OperatorKind.PHRASE), self.values(OperatorKind.EXCLUDED))

    def _moments(self, kind: OperatorKind) -> list[datetime]:
        return [moment for day in self.values(kind) if (moment := _first_moment(day))]


def parse_query(query: str) -> ParsedQuery:
    """Parse a query; whatever it is, something is returned."""
    line = " ".join(query.split())
    quotes = find_quotes(line)
    quoted = [_quoted_operator(line, quote) for quote in quotes]
    rest = blank_out(line, [one.span for one in quoted])
    bare = [_bare_operator(match) for match in _BARE.finditer(rest)]
    found = sorted((*quoted, *bare), key=lambda one: one.span)
    explain = _explain_invalid if len(line) <= LONGEST_TYPED_QUERY else _explain_in_long_text
    notes = {one: note for one in found if (note := explain(one))}
    operators = tuple(one for one in found if one not in notes)
    return ParsedQuery(line, operators, tuple(dict.fromkeys(notes.values())))


def _quoted_operator(line: str, quote: Quote) -> QueryOperator:
    begin = max(0, quote.outer.start - _LONGEST_PREFIX)
    prefix = _PREFIX.search(line, begin, quote.outer.start)
    kind = OperatorKind.PHRASE if prefix is None else _kind(prefix["key"])
    start = quote.outer.start if prefix is None else prefix.start()
    return QueryOperator(kind, quote.inner.of(line).strip(), Span(start, quote.outer.end))


def _bare_operator(match: regex.Match[str]) -> QueryOperator:
    return QueryOperator(_kind(match["key"]), match["value"], Span(*match.span()))


def _kind(key: str | None) -> OperatorKind:
    return OperatorKind(key.lower()) if key else OperatorKind.EXCLUDED


def _explain_invalid(operator: QueryOperator) -> str | None:
    """Return why an operator cannot be applied."""
    written = f"{operator.kind}:{operator.value}"
    match operator.kind:
        case OperatorKind.BEFORE | OperatorKind.AFTER if _first_moment(operator.value) is None:
            return (
                f"“{operator.value}” is no date, so “{written}” was searched as text. Use for example"
                f" {operator.kind}:2026-03-31."
            )
        case OperatorKind.TYPE if "/" not in media_type_labels.media_type(operator.value):
            names = ", ".join(media_type_labels.slugs())
            return f"“{written}” names no type, and was searched as text. There are: {names}."
        case OperatorKind.SET if operator.value.startswith(LABEL_SIGN):
            return f"“{operator.value}” names no document set, so “{written}” was searched as text."
        case OperatorKind.EXCLUDED | OperatorKind.PHRASE if not plain_words(operator.value):
            return f"“{operator.value}” contains no word to look for."
        case _:
            return None


def _explain_in_long_text(operator: QueryOperator) -> str | None:
    """Return why an operator is not applied in a text of more than `LONGEST_TYPED_QUERY` characters."""
    if operator.kind in (OperatorKind.PHRASE, OperatorKind.EXCLUDED):
        return (
            f"Your search is longer than {LONGEST_TYPED_QUERY} characters, so quotation marks and minus signs were"
            " read as ordinary text. Shorten it to require a phrase or exclude a word."
        )
    return _explain_invalid(operator)


def _first_moment(text: str) -> datetime | None:
    """Return the beginning, UTC, of a day, a month or a year; None if the text names none."""
    found = _DAY.fullmatch(text)
    if found is None:
        return None
    try:
        # Also where the digits are of a script that the standard library does not know.
        year, month, day = (int(part or 1) for part in found.groups())
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def remove_spans(query: str, spans: Iterable[Span]) -> str:
    for span in sorted(spans, reverse=True):
        query = f"{query[: span.start]} {query[span.end :]}"
    return " ".join(query.split())


def blank_out(line: str, spans: Iterable[Span], blank: str = _BLANK) -> str:
    """Put blanks in place of what has been read; all other places stay."""
    for span in spans:
        line = line[: span.start] + blank * (span.end - span.start) + line[span.end :]
    return line


def _set(values: Iterable[str]) -> frozenset[str] | None:
    return frozenset(values) or None


def _knows_none(_: str) -> bool:
    return False


def correct_request(
    request: SearchRequest, index: Index, is_word: Callable[[str], bool] = _knows_none
) -> SearchRequest:
    """Replace words of the message that no readable document contains by the nearest that one contains.

    Words that are read as a filter stay: a person's name need not stand in any text. Nothing is corrected in a
    text that was pasted.

    Args:
        is_word: whether a folded word is spelled right, though no document contains it; such a one stays.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    if len(request.message) > LONGEST_TYPED_QUERY:
        return request
    inference = request.inference
    query = spelling_query(inference.topic if inference.inferred else request.message)
    if not query.words:
        return request
    suggested = index.suggest_corrections(query, request.readers, request.deadline)
    corrections = {word: near for word, near in suggested.items() if not is_word(word)}
    if not corrections:
        return request
    corrected = correct_message(request.message, corrections)
    about = replace(inference, topic=correct_message(inference.topic, corrections))
    return replace(request, message=corrected, misspelled=request.message, inference=about)
