"""Parse the tool calls of the answering model, however loosely they are written."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

from backend.chat import prompts
from backend.chat.llm.messages import ToolCall
from backend.chat.loose_json import parse_loose_json
from backend.web_search.results import Freshness
from backend.web_search.search import LONGEST_QUERY
from backend.web_search.tool_texts import OPEN_URL, WEB_SEARCH

MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 500
MAX_CALLS = 8
MAX_PAGES = 8
"""Of a call, and of all calls of a step."""
MAX_ADDRESS_CHARACTERS = 2_000
MAX_DEPTH = 5
"""Of lists and objects around a query."""

INTERNAL_SEARCH_NAME = "internal_search"
TOOL_NAMES = (INTERNAL_SEARCH_NAME, WEB_SEARCH, OPEN_URL)

_EXAMPLES = {
    INTERNAL_SEARCH_NAME: '{"queries": ["..."]}',
    WEB_SEARCH: '{"query": "..."}',
    OPEN_URL: '{"pages": ["3"]}',
}
_QUERY_KEYS = ("queries", "query")
_PAGE_KEYS = ("pages", "page", "urls", "url")
_NUMBERS = re.compile(r"[\[\]\s,;]*\d+(?:\.\d)?(?:[\[\]\s,;]+\d+(?:\.\d)?)*[\[\]\s,;]*")


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A valid call of `internal_search`."""

    call: ToolCall
    queries: tuple[str, ...]
    """Those that are searched: the first ones."""
    written: int
    """How many there were."""


@dataclass(frozen=True, slots=True)
class WebSearchCall:
    """A valid call of `web_search`."""

    call: ToolCall
    query: str
    """On one line, no longer than search engines take; empty where nothing is asked."""
    written: int
    """How many queries there were; the first is searched."""
    freshness: Freshness | None = None
    """How old results may be; None for any age."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A valid call of `open_url`."""

    call: ToolCall
    pages: tuple[str, ...]
    """Numbers of results and of links, and addresses: the first ones, each once."""
    written: int
    """How many there were."""


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call that cannot be run, and the message to the model about it."""

    call: ToolCall
    message: str


ParsedCall: TypeAlias = SearchCall | WebSearchCall | OpenCall | InvalidCall


def parse_calls(calls: Sequence[ToolCall], offered: Collection[str]) -> list[ParsedCall]:
    """Parse calls, up to a maximum number.

    Args:
        offered: the names of the tools that there are in this turn.
    """
    return [parse_call(call, offered) for call in calls[:MAX_CALLS]]


def parse_call(call: ToolCall, offered: Collection[str]) -> ParsedCall:
    """Parse a call, however loosely its arguments are written; of too many queries or pages the first are kept."""
    if call.name not in offered:
        return InvalidCall(call, prompts.unknown_tool(call.name, ", ".join(offered)))
    parsed = _PARSERS[call.name](call, parse_loose_json(call.arguments))
    return parsed or InvalidCall(call, prompts.malformed_arguments(_EXAMPLES[call.name]))


def to_sendable_call(parsed: ParsedCall) -> ToolCall:
    """Make the call valid to be sent back: many servers parse the arguments again."""
    match parsed:
        case SearchCall(call, queries, _):
            return _with_arguments(call, {"queries": queries})
        case WebSearchCall(call, query):
            return _with_arguments(call, {"query": query})
        case OpenCall(call, pages, _):
            return _with_arguments(call, {"pages": pages})
        case InvalidCall(call):
            return replace(call, name=call.name[:100] or "unknown", arguments="{}")


def merge_queries(calls: Iterable[SearchCall]) -> tuple[str, ...]:
    """Return the queries of several calls, each once: they are run as one search."""
    return tuple(dict.fromkeys(query for call in calls for query in call.queries))


def note_left_out(call: SearchCall, searched: Collection[str]) -> str:
    """Return a note to the model if not all queries of its call were searched, else nothing."""
    count = sum(query in searched for query in call.queries)
    return prompts.queries_left_out(count, call.written) if count < call.written else ""


def _parse_search(call: ToolCall, arguments: object) -> SearchCall | None:
    texts = [one.strip() for one in _values(arguments, _QUERY_KEYS) if isinstance(one, str)]
    queries = tuple(text[:MAX_QUERY_CHARACTERS] for text in texts if text)
    return SearchCall(call, queries[:MAX_QUERIES], len(queries)) if queries else None


def _parse_web_search(call: ToolCall, arguments: object) -> WebSearchCall | None:
    texts = [one for one in _values(arguments, _QUERY_KEYS) if isinstance(one, str)]
    queries = [text for text in (" ".join(text.split()) for text in texts) if text]
    if not texts:
        return None
    first = queries[0][:LONGEST_QUERY].strip() if queries else ""
    return WebSearchCall(call, first, len(queries))


def _parse_opening(call: ToolCall, arguments: object) -> OpenCall | None:
    texts = [str(one).strip() for one in _values(arguments, _PAGE_KEYS)]
    split = (one for text in texts for one in _split_numbers(text))
    pages = tuple(dict.fromkeys(one[:MAX_ADDRESS_CHARACTERS] for one in split if one))
    return OpenCall(call, pages[:MAX_PAGES], len(pages)) if pages else None


def _split_numbers(text: str) -> list[str]:
    """Split what is a list of numbers, such as `[1], [3.1]`."""
    return re.findall(r"\d+(?:\.\d)?", text) if _NUMBERS.fullmatch(text) else [text]


_PARSERS: Mapping[str, Callable[[ToolCall, object], ParsedCall | None]] = {
    INTERNAL_SEARCH_NAME: _parse_search,
    WEB_SEARCH: _parse_web_search,
    OPEN_URL: _parse_opening,
}


def _with_arguments(call: ToolCall, arguments: Mapping[str, object]) -> ToolCall:
    return replace(call, arguments=json.dumps(arguments, ensure_ascii=False))


def _values(arguments: object, keys: Sequence[str]) -> Iterator[str | int | float]:
    """Yield the values among the arguments, whatever they are called and wrapped in."""
    return islice(_leaves(arguments, keys, MAX_DEPTH), 100)


def _leaves(value: object, keys: Sequence[str], depth: int) -> Iterator[str | int | float]:
    match value:
        case _ if not depth:
            return
        case str() if value.lstrip().startswith(("[", "{")) and (inner := parse_loose_json(value)):
            yield from _leaves(inner, keys, depth - 1)
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield value
        case list():
            for each in value:
                yield from _leaves(each, keys, depth - 1)
        case dict():
            yield from _leaves(_find_argument(value, keys), keys, depth - 1)
        case _:
            return


def _find_argument(fields: Mapping[str, Any], keys: Sequence[str]) -> object:
    """Return the value under one of the keys; under whatever name where it is the only one."""
    named = next((fields[key] for key in keys if key in fields), None)
    return next(iter(fields.values())) if named is None and len(fields) == 1 else named
