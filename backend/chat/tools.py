"""The tools of the answering model: what it may call, and how its calls are read."""

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
    """A call of `internal_search` that could be read."""

    call: ToolCall
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call that could not be run, and what the model is told about it."""

    call: ToolCall
    told: str


def read_calls(calls: Sequence[ToolCall]) -> list[SearchCall | InvalidCall]:
    """What the model asks for, up to a sensible number of calls."""
    return [read_call(call) for call in calls[:MAX_CALLS]]


def read_call(call: ToolCall) -> SearchCall | InvalidCall:
    """What the model asks for. A single query for a list is understood, further ones are left out."""
    if call.name != INTERNAL_SEARCH.name:
        return InvalidCall(call, prompts.unknown_tool(call.name, INTERNAL_SEARCH.name))
    queries = _queries(_arguments(call).get("queries"))
    return SearchCall(call, queries) if queries else InvalidCall(call, _MALFORMED)


def to_sendable_call(read: SearchCall | InvalidCall) -> ToolCall:
    """The call as it may be repeated to a server, of which many parse the arguments again."""
    match read:
        case SearchCall(call, queries):
            return replace(call, arguments=json.dumps({"queries": queries}, ensure_ascii=False))
        case InvalidCall(call):
            return replace(call, name=call.name[:100] or "unknown", arguments="{}")


def queries_of(calls: Sequence[SearchCall]) -> tuple[str, ...]:
    """The queries of several calls, each once: they are run as one search."""
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
