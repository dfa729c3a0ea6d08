"""Read the settings and the credential of a source from a command line; secrets are never arguments."""

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

PROMPT = "-"
"""Given as a file: the secret is prompted for without echo, or read from a pipe."""

Values: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInput:
    name: str | None
    settings: Values
    credential: Values = field(repr=False)
    as_json: bool


def parse_value(entry: Entry | Variants, option: str, value: Any) -> object:
    """Convert the value of an option.

    Raises:
        typer.BadParameter: the file cannot be read, the variable does not exist, or the JSON is invalid.
    """
    if not isinstance(entry, Entry):
        return value
    match entry.field:
        case SecretField() if option.endswith("-env"):
            return read_variable(value)
        case SecretField():
            return read_secret(entry.label, option, value)
        case JsonField():
            return _parse_json(value, option)
        case ListField():
            return [each for each in value if each]
        case _:
            return value


def read_object(path: Path | None) -> dict[str, object]:
    """Read the JSON object of a file; return an empty one without a file.

    Raises:
        typer.BadParameter: the file contains no JSON object.
    """
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read") from error
    values = _parse_json(text, str(path))
    if not isinstance(values, dict):
        raise typer.BadParameter(f"{path} contains no JSON object")
    return values


def prompt_secret(label: str) -> str:
    """Prompt for a secret without echo; read it from standard input if that is no terminal."""
    if sys.stdin.isatty():
        return str(typer.prompt(label, hide_input=True, err=True))
    return _strip_line_break(sys.stdin.read())


def flatten_parts(
    parts: Sequence[Part], variant: str = ""
) -> Iterator[tuple[Place, Entry | Variants, str]]:
    """Yield all parts with their paths; parts of variants with the name of their variant."""
    for part in parts:
        yield part.path, part, variant
        if isinstance(part, Variants):
            for option in part.options:
                yield from flatten_parts(option.parts, option.name)


def infer_variants(parts: Sequence[Part], given: Mapping[Place, object]) -> dict[Place, object]:
    """Return the only variants that the given values fit, by the paths of their tags."""
    return {
        part.tag: fitting[0]
        for part in parts
        if isinstance(part, Variants) and part.tag not in given
        if len(fitting := _matching_variants(part, given)) == 1
    }


def _matching_variants(part: Variants, given: Mapping[Place, object]) -> list[str]:
    named = {place for place in given if place[: len(part.path)] == part.path}
    return [
        each.name
        for each in part.options
        if named and named <= {place for place, _, _ in flatten_parts(each.parts)}
    ]


def read_variable(variable: str) -> str:
    """Read a variable of the environment. Raises typer.BadParameter: there is no such variable."""
    value = environment(variable)
    if value is None:
        raise typer.BadParameter(f"there is no environment variable {variable}")
    return value


def read_secret(label: str, option: str, name: str) -> str:
    """Read a secret from a file, or from a person or a pipe.

    Raises:
        typer.BadParameter: the file cannot be read.
    """
    if name == PROMPT:
        return prompt_secret(label)
    try:
        return _strip_line_break(Path(name).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise typer.BadParameter(f"{name} cannot be read", param_hint=option) from error


def _strip_line_break(text: str) -> str:
    """Remove the final line break; a text of several lines, such as a key, needs it."""
    line = text.rstrip("\r\n")
    return text if "\n" in line else line


def _parse_json(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{where} is not valid JSON: {error}") from error
