"""Read JSON as models write it: fenced, encoded twice, or with a comma too many."""

import json
import re

from backend.chat.llm.surrogates import join_surrogates

MAX_ENCODINGS = 3

_FENCED = re.compile(r"\s*`{3,}[\w-]*\s*\n?(.*?)\s*`{3,}\s*", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[}\]])', re.DOTALL)
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|[{}]', re.DOTALL)
"""A string may not be whole yet: its braces are no braces."""


def parse_loose_json(text: str) -> object:
    """Return the value that is meant; None if there is none. Halves of characters are mended."""
    value: object = text
    for _ in range(MAX_ENCODINGS):
        if not isinstance(value, str):
            return value
        value = _parse(value)
    return None if isinstance(value, str) else value


def find_object_end(text: str, start: int) -> int | None:
    """Return where the object that begins at `start` ends; None if it does not."""
    depth = 0
    for found in _STRING_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if not depth:
            return found.end()
    return None


def _parse(text: str) -> object:
    fenced = _FENCED.fullmatch(text)
    bare = _STRING_OR_COMMA.sub(r"\1", fenced[1] if fenced else text)
    try:
        return _mend(json.loads(bare))
    except (ValueError, RecursionError):
        return None


def _mend(value: object) -> object:
    """Mend the strings of a value: an escape in JSON may be half a character."""
    match value:
        case str():
            return join_surrogates(value)
        case list():
            return [_mend(each) for each in value]
        case dict():
            return {join_surrogates(key): _mend(each) for key, each in value.items()}
        case _:
            return value
