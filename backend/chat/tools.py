"""Define the tools of the answering model, and parse its calls."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from backend.chat import prompts
from backend.chat.llm.messages import ToolCall, ToolSpec
from backend.chat.loose_json import parse_loose_json

MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 500
MAX_CALLS = 8
MAX_DEPTH = 5
"""Of lists and objects around a query."""

INTERNAL_SEARCH = ToolSpec(
    name="internal_search",
    description=prompts.SEARCH_DESCRIPTION,
    parameters={
        "type": "object",
        "properties": {
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "description": prompts.QUERIES_DESCRIPTION,
            }
        },
        "required": ["queries"],
        "additionalProperties": False,
    },
)

TOOL_NAMES = (INTERNAL_SEARCH.name,)
_EXAMPLE = '{"queries": ["..."]}'


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A valid call of `internal_search`."""

    call: ToolCall
    queries: tuple[str, ...]
    """Those that are searched: the first ones."""
    written: int
    """How many there were."""


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call that cannot be run, and the message to the model about it."""

    call: ToolCall
    message: str


def parse_calls(calls: Sequence[ToolCall]) -> list[SearchCall | InvalidCall]:
    """Parse calls, up to a maximum number."""
    return [parse_call(call) for call in calls[:MAX_CALLS]]


def parse_call(call: ToolCall) -> SearchCall | InvalidCall:
    """Parse a call, however loosely its arguments are written; only its first queries are searched."""
    if call.name != INTERNAL_SEARCH.name:
        return InvalidCall(call, prompts.unknown_tool(call.name, INTERNAL_SEARCH.name))
    texts = [text.strip() for text in _texts(parse_loose_json(call.arguments), MAX_DEPTH)]
    queries = tuple(text[:MAX_QUERY_CHARACTERS] for text in texts if text)
    if not queries:
        return InvalidCall(call, _MALFORMED)
    return SearchCall(call, queries[:MAX_QUERIES], len(queries))


def to_sendable_call(parsed: SearchCall | InvalidCall) -> ToolCall:
    """Make the call valid to be sent back: many servers parse the arguments again."""
    match parsed:
        case SearchCall(call, queries, _):
            return replace(call, arguments=json.dumps({"queries": queries}, ensure_ascii=False))
        case InvalidCall(call):
            return replace(call, name=call.name[:100] or "unknown", arguments="{}")


def merge_queries(calls: Sequence[SearchCall]) -> tuple[str, ...]:
    """Return the queries of several calls, each once: they are run as one search."""
    return tuple(dict.fromkeys(query for call in calls for query in call.queries))


def note_left_out(call: SearchCall, searched: Collection[str]) -> str:
    """Return a note to the model if not all queries of its call were searched, else nothing."""
    count = sum(query in searched for query in call.queries)
    return prompts.queries_left_out(count, call.written) if count < call.written else ""


_MALFORMED = prompts.malformed_arguments(_EXAMPLE)


def _texts(value: object, depth: int) -> Iterator[str]:
    """Yield the queries among the arguments, whatever they are called and wrapped in."""
    match value:
        case _ if not depth:
            return
        case str() if value.lstrip().startswith(("[", "{")) and (inner := parse_loose_json(value)):
            yield from _texts(inner, depth - 1)
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each, depth - 1)
        case {"queries": inner} | {"query": inner}:
            yield from _texts(inner, depth - 1)
        case dict() if len(value) == 1:
            yield from _texts(next(iter(value.values())), depth - 1)
        case _:
            return
