"""Types of settings that several sources have, each checked when it is entered."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from connectors.document import reader_token
from connectors.files.glob_patterns import Glob


def _tokens(readers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(reader_token, readers))


def _understood(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        Glob.of(pattern)
    return patterns


ReaderTokens: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_tokens)]

AbsolutePath: TypeAlias = Annotated[Path, AfterValidator(Path.absolute)]

Globs: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_understood)]
