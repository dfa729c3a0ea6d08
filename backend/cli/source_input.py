"""What a command line said of a source: its settings, and its credential, which is never an argument."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import typer

from backend.settings import environment
from connectors.settings_form import Entry, JsonField, ListField, Part, SecretField, Variants
from connectors.settings_form import Path as Place

ASKED = "-"
"""In place of a file: asked for, unseen, or read from a pipe."""

Values: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    name: str | None
    settings: Values
    credential: Values = field(repr=False)
    as_json: bool


def value_of(entry: Entry | Variants, option: str, value: Any) -> object:
    """What the value of an option says.

    Raises:
        typer.BadParameter: a file that cannot be read, a variable that is not there, what is no JSON.
    """
    if not isinstance(entry, Entry):
        return value
    match entry.field:
        case SecretField() if option.endswith("-env"):
            return _from_environment(value)
        case SecretField():
            return _from_file(entry, option, value)
        case JsonField():
            return _json(value, option)
        case ListField():
            return [each for each in value if each]
        case _:
            return value


def object_in(path: Path | None) -> dict[str, object]:
    """The JSON object of a file; an empty one without a file.

    Raises:
        typer.BadParameter: it holds none.
    """
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read") from error
    found = _json(text, str(path))
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{path} holds no JSON object")
    return found


def asked(label: str) -> str:
    """A secret, from who sits at the terminal, unseen; from the pipe where nobody does."""
    if sys.stdin.isatty():
        return str(typer.prompt(label, hide_input=True, err=True))
    return _without_end(sys.stdin.read())


def flat(parts: Sequence[Part], variant: str = "") -> Iterator[tuple[Place, Entry | Variants, str]]:
    """All parts with their places, those of all variants too with the names of these."""
    for part in parts:
        yield part.path, part, variant
        if isinstance(part, Variants):
            for option in part.options:
                yield from flat(option.parts, option.name)


def inferred(parts: Sequence[Part], given: Mapping[Place, object]) -> dict[Place, object]:
    """The variants that what is given can only be of, by the places of their tags."""
    return {
        part.tag: fitting[0]
        for part in parts
        if isinstance(part, Variants) and part.tag not in given
        if len(fitting := _fitting(part, given)) == 1
    }


def _fitting(part: Variants, given: Mapping[Place, object]) -> list[str]:
    named = {place for place in given if place[: len(part.path)] == part.path}
    return [
        each.name
        for each in part.options
        if named and named <= {place for place, _, _ in flat(each.parts)}
    ]


def _from_environment(variable: str) -> str:
    found = environment(variable)
    if found is None:
        raise typer.BadParameter(f"there is no environment variable {variable}")
    return found


def _from_file(entry: Entry, option: str, name: str) -> str:
    if name == ASKED:
        return asked(entry.label)
    try:
        return _without_end(Path(name).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise typer.BadParameter(f"{name} cannot be read", param_hint=option) from error


def _without_end(text: str) -> str:
    """Without the line break at its end, but for texts of several lines, which mean it."""
    line = text.rstrip("\r\n")
    return text if "\n" in line else line


def _json(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{where} is no JSON: {error}") from error
