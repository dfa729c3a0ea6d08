"""Define the tools of the answering model, and parse its calls."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend.chat import prompts
from backend.chat.llm.messages import ToolCall, ToolSpec

MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 500
MAX_CALLS = 8

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

_EXAMPLE = '{"queries": ["..."]}'


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A valid call of `internal_search`."""

    call: ToolCall
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call that cannot be run, and the message to the model about it."""

    call: ToolCall
    message: str


def parse_calls(calls: Sequence[ToolCall]) -> list[SearchCall | InvalidCall]:
    """Parse calls, up to a maximum number."""
    return [parse_call(call) for call in calls[:MAX_CALLS]]


def parse_call(call: ToolCall) -> SearchCall | InvalidCall:
    """Parse a call. A single query instead of a list is accepted, too many are cut."""
    if call.name != INTERNAL_SEARCH.name:
        return InvalidCall(call, prompts.unknown_tool(call.name, INTERNAL_SEARCH.name))
    queries = _queries(_arguments(call).get("queries"))
    return SearchCall(call, queries) if queries else InvalidCall(call, _MALFORMED)


def to_sendable_call(parsed: SearchCall | InvalidCall) -> ToolCall:
    """Make the call valid to be sent back: many servers parse the arguments again."""
    match parsed:
        case SearchCall(call, queries):
            return replace(call, arguments=json.dumps({"queries": queries}, ensure_ascii=False))
        case InvalidCall(call):
            return replace(call, name=call.name[:100] or "unknown", arguments="{}")


def merge_queries(calls: Sequence[SearchCall]) -> tuple[str, ...]:
    """Return the queries of several calls, each once: they are run as one search."""
    return tuple(dict.fromkeys(query for call in calls for query in call.queries))


_MALFORMED = prompts.malformed_arguments(_EXAMPLE)


def _arguments(call: ToolCall) -> dict[str, object]:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _queries(value: object) -> tuple[str, ...]:
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list):
        return ()
    texts = [each.strip()[:MAX_QUERY_CHARACTERS] for each in several if isinstance(each, str)]
    return tuple(text for text in texts if text)[:MAX_QUERIES]
