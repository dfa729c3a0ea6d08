"""Read words of a query as filters: "in January 2026", "by Wilhelmina Okafor", "in Slack", "PDF".

By rules that rather miss a filter than invent one. Names count only where the asker may see them, and where they
exclude anything: a filter that all readable documents pass says nothing. What is quoted or is an operator, such as
`source:`, is never interpreted, and a field that is filtered already is not filtered by words too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import reduce
from types import MappingProxyType

import regex

from backend.search import media_type_labels
from backend.search.date_expressions import MAY_NAME_A_DATE, DateExpression, find_dates
from backend.search.models import (
    EVERY_KIND,
    FilterKind,
    Inference,
    InferredFilter,
    SearchRequest,
)
from backend.search.query_syntax import (
    LONGEST_TYPED_QUERY,
    OperatorKind,
    ParsedQuery,
    blank_out,
    parse_query,
    remove_spans,
)
from backend.search.visible_names import VisibleNames, VisibleNamesCache
from connectors.document import Span
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction import registry
from indexing.index.person_keys import person_key
from indexing.index.protocols import DateRange, Filters
from indexing.runtime.deadline import DeadlineExceededError
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import plain_words

_READ = "\0"
"""Stands in place of words that were read already: no other words are read across it."""

_KINDS_OF_SOURCE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "slack": frozenset({"slack"}),
        "confluence": frozenset({"confluence"}),
        "wiki": frozenset({"confluence"}),
        "github": frozenset({"github"}),
        **dict.fromkeys(("feed", "feeds", "rss"), frozenset({"feed"})),
        **dict.fromkeys(
            ("mail", "mails", "email", "emails", "e-mail", "e-mails", "mailbox", "inbox"),
            frozenset({"imap", "mbox"}),
        ),
    }
)
"""What people call a kind of source, and the kinds as `connectors.registry` names them."""
_TABLES = frozenset({registry.XLSX, registry.CSV, registry.TSV})
_TYPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("pdf", "pdfs"), frozenset({registry.PDF})),
        **dict.fromkeys(("spreadsheet", "spreadsheets"), _TABLES),
        **dict.fromkeys(("excel", "xlsx"), frozenset({registry.XLSX})),
        **dict.fromkeys(("powerpoint", "pptx", "slides"), frozenset({registry.PPTX})),
        **dict.fromkeys(("docx", "word document", "word documents"), frozenset({registry.DOCX})),
        **dict.fromkeys(
            ("mail", "mails", "email", "emails", "e-mail", "e-mails"), frozenset({registry.EML})
        ),
        "csv": frozenset({registry.CSV}),
    }
)
_TYPE = "|".join(sorted(_TYPES, key=len, reverse=True))
_FUNCTION_WORDS = (FUNCTION_WORDS["English"] | FUNCTION_WORDS["German"]) - {"and", "or", "und"}

_SOURCE = regex.compile(
    r"(?i)(?<![\w-])(?<!\b(?:and|or|und|oder)\ )(?:in|on|from|within|im|auf|aus)\ (?:(?:the|our|my|dem|der|den)\ )?"
    r"(?P<name>[\w.&-]+(?:\ [\w.&-]+){0,2}?)"
    rf"(?=\s*(?:$|{_READ}|[?!,;:)]|(?<=\s)\L<function_words>(?!\w)))",
    function_words=sorted(_FUNCTION_WORDS),
)
"""What follows must be no noun: "on GitHub Actions" names no source. Of several sources none is chosen."""
_PERSON = regex.compile(
    r"(?i)(?<![\w-])(?:(?:written|sent|posted|created|uploaded|verfasst|geschrieben)\ )?(?:by|from|von)\ "
    r"(?P<name>[^\s\0,;:?!()]+(?:\ [^\s\0,;:?!()]+){0,3})"
)
_TYPE_FIRST = regex.compile(
    rf"(?i)^(?:(?:a|all|any|the)\ )?(?P<name>{_TYPE})"
    rf"(?=\s*{_READ}|\s+(?:about|by|from|on|of|with|regarding)\b)"
)
_TYPE_LAST = regex.compile(rf"(?i)\ \(?(?P<name>{_TYPE})\)?[\s{_READ}]*$")
_TASK = regex.compile(
    rf"(?i)\?[\s{_READ}]*$|^(?:how|what|why|when|where|who|which|can|could|is|are|do|does|did|should|will|wie|was|warum|wann|wo"
    r"|wer|convert|export|save|print|merge|create|open|import|edit|sign|upload|download|read|parse|compress|split"
    r"|generate|attach|send|make|scan)\b"
)
"""Who begins or ends so asks about the format, not for a file in it."""
_SAYS_NOTHING = ENGLISH | {"all", "any", "everything", "list", "show"}
_DOCUMENTS = frozenset({"document", "file", "message", "note", "page", "post"})


@dataclass(frozen=True, slots=True)
class NameLookup:
    """What names are looked up in; neither is called unless words call for it."""

    visible: Callable[[], VisibleNames]
    source_kinds: Callable[[], Mapping[str, str]]
    """Returns the kind of each source by its name, also of those that the asker may not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterInference:
    """Reads filters from words, for one index."""

    names: VisibleNamesCache
    source_kinds: Callable[[], Mapping[str, str]]
    """Returns the kind of each source by its name."""
    today: Callable[[], date] = date.today

    def infer(
        self, request: SearchRequest, parsed: ParsedQuery, kinds: frozenset[FilterKind] = EVERY_KIND
    ) -> SearchRequest:
        """Return the request with the filters that words of the query mean.

        If names cannot be looked up, the words are only searched.

        Args:
            parsed: the query of which `request.message` is the text.
            kinds: of filters that may be read from words.
        """
        allowed = kinds - _filtered_kinds(request.filters)
        lookup = NameLookup(
            lambda: self.names.get(request.readers, request.deadline), self.source_kinds
        )
        try:
            inference = infer_filters(parsed, allowed, lookup, self.today())
        except (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError):
            return request
        return replace(request, inference=inference)

    def infer_from_message(self, request: SearchRequest) -> SearchRequest:
        """Read the message of a chat."""
        return self.infer(request, parse_query(request.message))


def _filtered_kinds(filters: Filters) -> frozenset[FilterKind]:
    filtered = {
        FilterKind.SOURCE: filters.sources is not None,
        FilterKind.TYPE: filters.media_types is not None,
        FilterKind.PERSON: filters.people is not None,
        FilterKind.DATE: filters.updated != DateRange(),
    }
    return frozenset(kind for kind, is_filtered in filtered.items() if is_filtered)


def infer_filters(
    parsed: ParsedQuery, kinds: frozenset[FilterKind], lookup: NameLookup, today: date
) -> Inference:
    """Return what words of a query mean as filters, in its order.

    Raises as `VisibleNamesCache.get` does.
    """
    if len(parsed.query) > LONGEST_TYPED_QUERY:
        return Inference()
    read: Mapping[FilterKind, Callable[[str], Iterable[InferredFilter]]] = {
        FilterKind.DATE: lambda text: _read_dates(text, today),
        FilterKind.SOURCE: lambda text: _read_sources(text, lookup),
        FilterKind.PERSON: lambda text: _read_people(text, lookup),
        FilterKind.TYPE: lambda text: _read_types(text, lookup),
    }
    text = blank_out(parsed.query, [one.span for one in parsed.operators], _READ)
    inferred: list[InferredFilter] = []
    for kind in (kind for kind in read if kind in kinds):
        found = list(read[kind](text))
        # Words of one filter are not read as another: "from January 2026" names no person.
        text = blank_out(text, [one.span for one in found], _READ)
        inferred.extend(found)
    if not inferred:
        return Inference()
    operators = [one.span for one in parsed.operators if one.kind is not OperatorKind.PHRASE]
    topic = remove_spans(parsed.query, [*operators, *(one.span for one in inferred)])
    ordered = tuple(sorted(inferred, key=lambda one: one.span))
    return Inference(ordered, topic if any(map(_is_of_a_topic, plain_words(topic))) else "")


def _is_of_a_topic(word: str) -> bool:
    """Return whether a word says more of a document than that it is one."""
    return word not in _SAYS_NOTHING and word.removesuffix("s") not in _DOCUMENTS


def _read_dates(text: str, today: date) -> list[InferredFilter]:
    """Return the filter of the dates that a text names; none where they exclude each other."""
    found = find_dates(text, today) if MAY_NAME_A_DATE.search(text) else []
    together = reduce(DateRange.narrowed_by, (each.dates for each in found), DateRange())
    if together.since and together.until and together.since >= together.until:
        return []
    return [_date_filter(text, each) for each in found]


def _date_filter(text: str, found: DateExpression) -> InferredFilter:
    return InferredFilter(
        kind=FilterKind.DATE,
        words=found.span.of(text),
        span=found.span,
        meaning=f"updated {_describe(found.dates)}",
        filters=Filters(updated=found.dates),
        date_names=found.names,
    )


def _describe(dates: DateRange) -> str:
    first = dates.since.date().isoformat() if dates.since else ""
    last = (dates.until - timedelta(days=1)).date().isoformat() if dates.until else ""
    if first and last:
        return first if first == last else f"{first} to {last}"
    return f"{first} or later" if first else f"{last} or earlier"


def _read_sources(text: str, lookup: NameLookup) -> list[InferredFilter]:
    """Return the source that a text names, by its own name or by that of its kind; none where it names several."""
    return _only_one(_find_sources(text, lookup))


def _find_sources(text: str, lookup: NameLookup) -> Iterator[InferredFilter]:
    for match in _SOURCE.finditer(text, overlapped=True):
        if match["name"].partition(" ")[0].casefold() in _FUNCTION_WORDS:
            continue
        named = _sources_named(match["name"], lookup)
        visible = lookup.visible()
        if named and sum(visible.sources[one] for one in named) < visible.documents:
            yield InferredFilter(
                kind=FilterKind.SOURCE,
                words=match[0],
                span=Span(*match.span()),
                meaning=", ".join(sorted(named)),
                filters=Filters(sources=named),
            )


def _sources_named(name: str, lookup: NameLookup) -> frozenset[str]:
    """Return the sources that the asker may see and that have this name, or are of a kind that is called so."""
    visible = lookup.visible().sources
    own = frozenset(one for one in visible if _simplify(one) == _simplify(name))
    wanted = _KINDS_OF_SOURCE.get(name.casefold(), frozenset())
    if own or not wanted:
        return own
    return frozenset(
        one for one, kind in lookup.source_kinds().items() if kind in wanted and one in visible
    )


def _simplify(name: str) -> str:
    return " ".join(regex.sub(r"[-_.]", " ", name.casefold()).split())


def _read_people(text: str, lookup: NameLookup) -> list[InferredFilter]:
    """Return the person whom a text names as an author, by a full name or an address; none where it names several."""
    return _only_one(_find_people(text, lookup))


def _find_people(text: str, lookup: NameLookup) -> Iterator[InferredFilter]:
    for match in _PERSON.finditer(text, overlapped=True):
        words = match["name"].split(" ")
        if words[0].casefold() in _FUNCTION_WORDS:
            continue
        for count in range(len(words), 0, -1):
            name = " ".join(words[:count]).rstrip(".'’")
            people = _people_named(name, lookup)
            if people:
                span = Span(match.start(), match.start("name") + len(name))
                yield InferredFilter(
                    kind=FilterKind.PERSON,
                    words=span.of(text),
                    span=span,
                    meaning=name,
                    filters=Filters(people=people),
                )
                break


def _people_named(name: str, lookup: NameLookup) -> frozenset[str]:
    """Return the keys of those who are called so; a single word may as well be something else."""
    if " " not in name and "@" not in name:
        return frozenset()
    return lookup.visible().people.get(person_key(name), frozenset())


def _read_types(text: str, lookup: NameLookup) -> list[InferredFilter]:
    """Return the type of file that a text begins or ends with, as in "travel policy PDF"."""
    match = _TYPE_FIRST.search(text) or _find_last_type(text)
    if match is None:
        return []
    visible = lookup.visible()
    wanted = frozenset(
        one for one in _TYPES[match["name"].casefold()] if one in visible.media_types
    )
    if not wanted or sum(visible.media_types[one] for one in wanted) >= visible.documents:
        return []
    span = Span(*match.span("name"))
    return [
        InferredFilter(
            kind=FilterKind.TYPE,
            words=span.of(text),
            span=span,
            meaning=", ".join(sorted(map(media_type_labels.display_name, wanted))),
            filters=Filters(media_types=wanted),
        )
    ]


def _find_last_type(text: str) -> regex.Match[str] | None:
    match = _TYPE_LAST.search(text)
    if match is None or _TASK.search(text):
        return None
    before = text[: match.start()].casefold().split()
    return match if before and before[-1] not in _FUNCTION_WORDS else None


def _only_one(found: Iterable[InferredFilter]) -> list[InferredFilter]:
    several = list(found)
    return several if len(several) == 1 else []
