"""Find tool calls that a model writes into its text instead of making them.

They are `<tool_call>{"name": …}</tool_call>`, `<function_calls><invoke name="…">…`, `<function=…>…`, what
follows `[TOOL_CALLS]` or `<|python_tag|>`, and JSON that names a known tool. They are no part of an
answer: what can be read is a call, the rest is dropped. In code only what names a known tool is one.
"""

import json
import re
from collections.abc import Collection, Generator, Iterable, Iterator

import regex

from backend.chat.llm.client import ModelError
from backend.chat.llm.code_tracker import CodeTracker
from backend.chat.llm.messages import Finished, ModelEvent, TextDelta, ToolCall
from backend.chat.loose_json import find_object_end, parse_loose_json

LONGEST_GUESS = 4_000
"""Characters of JSON that is a call only if it turns out to name a known tool."""

_NAMESPACE = r"(?:\w++:)?"
_CALL_TAG = rf"<{_NAMESPACE}(?P<kind>tool_calls?|function_calls?|tool_use|invoke)(?:\s[^<>]*+)?+>"
_RESULT_TAG = rf"<{_NAMESPACE}(?P<kind>tool_response|tool_result|function_results?)>"
_FUNCTION_TAG = r"<(?P<kind>function)=[^<>\s]++>"
_TOKEN = r"\[TOOL_CALLS\]|<\|(?:python_tag|tool_call)\|>"
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "action_input")
_GUESS_KEYS = ("type", "function", "tool_call", "function_call", "tool_calls", *_ARGUMENT_KEYS)

_MAY_BEGIN = re.compile(r"[`\[{<]")
_INVOKE = re.compile(
    rf"<{_NAMESPACE}(?:invoke\s[^<>]*?name=[\"']?|function=)(?P<name>[\w.-]+)[^<>]*>"
    rf"(?P<body>.*?)(?:</{_NAMESPACE}(?:invoke|function)\s*>|\Z)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    rf"<{_NAMESPACE}parameter(?:\s[^<>]*?name=[\"']?|=)(?P<name>[\w.-]+)[^<>]*>"
    rf"(?P<value>.*?)(?:</{_NAMESPACE}parameter\s*>|\Z)",
    re.DOTALL,
)


def split_written_calls(
    events: Iterable[ModelEvent], known: Collection[str]
) -> Generator[ModelEvent, None, None]:
    """Pass on the events of a step, with the calls of known tools taken out of the text.

    Raises:
        ModelError: as the events do.
    """
    splitter = WrittenCallSplitter(known)
    try:
        for event in events:
            match event:
                case TextDelta(text):
                    yield from _as_delta(splitter.feed(text))
                case Finished():
                    yield from _as_delta(splitter.end())
                    yield from splitter.calls
                    yield event
                case _:
                    yield event
    except ModelError:
        yield from _as_delta(splitter.end())
        raise


def _as_delta(text: str) -> Iterator[TextDelta]:
    if text:
        yield TextDelta(text)


class WrittenCallSplitter:
    """Splits text that arrives in any pieces into text and calls."""

    def __init__(self, known: Collection[str]) -> None:
        self.calls: list[ToolCall] = []
        self._known = known
        self._opening = _opening_pattern(known)
        self._code = CodeTracker()
        self._held = ""
        """What may yet become a call."""
        self._around = ""
        """Characters that are dropped after a call: blanks, and the end of the list or fence around it."""
        self._ended = False

    def feed(self, text: str) -> str:
        """Return the text that is certain to be no call."""
        if not self._held and not self._around and not _MAY_BEGIN.search(text):
            self._code.feed(text)
            return text
        self._held += text
        return "".join(self._split())

    def end(self) -> str:
        """Return what was held back and is no call."""
        self._ended = True
        return "".join(self._split())

    def _split(self) -> Iterator[str]:
        while self._held:
            self._held = self._held.lstrip(self._around)
            opening = self._find_opening()
            yield self._release(opening.start() if opening else len(self._held))
            if opening is None or opening.partial:
                return
            # Again, now that the text before it is gone.
            opening = self._find_opening()
            end = self._find_end(opening) if opening else None
            if opening is None or end is None:
                return
            yield self._judge(opening, end)

    def _find_opening(self) -> "regex.Match[str] | None":
        for place in _MAY_BEGIN.finditer(self._held):
            found = self._opening.match(self._held, place.start(), partial=not self._ended)
            if found:
                return found
        return None

    def _find_end(self, opening: "regex.Match[str]") -> int | None:
        """Return where the call ends; None if that has not arrived."""
        end = None
        if opening["json"]:
            end = find_object_end(self._held, opening.start("json"))
        elif opening["kind"]:
            closing = re.compile(rf"</{_NAMESPACE}{opening['kind']}\s*>")
            found = closing.search(self._held, opening.end())
            end = found.end() if found else None
        is_guess = opening["json"] and not opening["named"]
        is_too_long = is_guess and len(self._held) > LONGEST_GUESS
        return len(self._held) if end is None and (self._ended or is_too_long) else end

    def _judge(self, opening: "regex.Match[str]", end: int) -> str:
        """Take the call out, or return the first character of what is none."""
        calls = [] if opening["result"] else list(_parse_calls(self._held[:end]))
        in_code = self._code.in_code or opening["fence"]
        is_guess = opening["json"] and not opening["named"]
        names_tool = any(name in self._known for name, _ in calls)
        if not names_tool and (in_code or is_guess):
            return self._release(1)
        for name, arguments in calls:
            self.calls.append(ToolCall(f"written-{len(self.calls) + 1}", name, arguments))
        self._held = self._held[end:]
        self._around = " \t\n,]`" if opening["fence"] or "`" in self._around else " \t\n,]"
        return ""

    def _release(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        self._code.feed(text)
        self._around = "" if text else self._around
        return text


def _opening_pattern(known: Collection[str]) -> "regex.Pattern[str]":
    names = "|".join(map(re.escape, known))
    named = rf'"(?:{"|".join(_NAME_KEYS)})"\s*+:\s*+"(?:functions\.)?(?:{names})"'
    guessed = rf'"(?:{"|".join(_GUESS_KEYS)})"\s*+:'
    return regex.compile(
        r"(?P<fence>`{3,}+[\w-]*+[ \t]*+\n\s*+)?+"
        rf"(?:(?:{_CALL_TAG}|{_FUNCTION_TAG})\s*+(?:[\[{{<`]|{names})"
        rf"|(?P<result>{_RESULT_TAG})|{_TOKEN}"
        rf"|(?:\[\s*+)?+(?P<json>\{{\s*+(?:(?P<named>{named})|{guessed})))"
    )


def _parse_calls(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the arguments of each call that can be read."""
    invoked = list(_INVOKE.finditer(text))
    for call in invoked:
        values = {each["name"]: each["value"].strip() for each in _PARAMETER.finditer(call["body"])}
        yield call["name"], json.dumps(values) if values else call["body"]
    start = -1 if invoked else text.find("{")
    while start >= 0:
        end = find_object_end(text, start) or len(text)
        yield from _calls_in(parse_loose_json(text[start:end]))
        start = text.find("{", end)


def _calls_in(value: object) -> Iterator[tuple[str, str]]:
    match value:
        case {"tool_calls": [*inner]}:
            for each in inner:
                yield from _calls_in(each)
        case (
            {"function": dict(inner)} | {"function_call": dict(inner)} | {"tool_call": dict(inner)}
        ):
            yield from _calls_in(inner)
        case dict():
            name = next((value[key] for key in _NAME_KEYS if key in value), None)
            arguments: object = next((value[key] for key in _ARGUMENT_KEYS if key in value), {})
            if isinstance(name, str):
                written = arguments if isinstance(arguments, str) else json.dumps(arguments)
                yield name.removeprefix("functions."), written
        case _:
            return
