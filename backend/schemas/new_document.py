"""JSON of the documents that programs put in. One that is not valid is refused by itself."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from backend.schemas.base import RequestObject
from backend.schemas.system import FieldError
from connectors.access import parse_reader_token
from connectors.text_cleaning import to_one_line
from indexing.text.normalization import is_storable

_Value = TypeVar("_Value")

MOST_DOCUMENTS = 100
"""Of one request."""
LONGEST_ID = 500
LONGEST_TEXT = 2_000_000
MOST_SECTIONS = 1_000
"""Of one document."""
_MOST_NAMES = 100
"""Authors, or tags, of one document."""
_MOST_CLAUSES = 20
_MOST_TOKENS = 1_000
"""Of one list of readers."""
_MOST_READERS = 2_000
"""Of all lists of a document together."""
_MOST_FAULTS = 5
_EARLIEST, _LATEST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_MOMENT = "2026-03-02T09:30:00Z"
_DOCUMENT: dict[str, JsonValue] = {
    "id": "ticket-4711",
    "title": "The saw stops after ten minutes",
    "text": "The customer reports that the saw stops. The filter was blocked; cleaning it helped.",
    "link": "https://tickets.example.com/4711",
    "updated_at": _MOMENT,
    "authors": [{"name": "Ann Lee", "email": "ann@example.com"}],
    "tags": ["saws"],
    "readers": [["group:support", "user:ann@example.com"]],
}
_FILE: dict[str, JsonValue] = {
    "source": "tickets",
    "id": "manual-c40",
    "title": "Service manual C40",
    "link": "https://files.example.com/manual-c40.pdf",
    "readers": ["group:support"],
}
_READERS: Any = {
    "description": "Who may read it: lists of `user:ADDRESS`, `group:NAME` or `public`. Of each list an asker must hold one;"
    " a single list need not be in another.",
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
        {
            "type": "array",
            "minItems": 1,
            "maxItems": _MOST_CLAUSES,
            "items": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        },
    ],
}
_NO_READERS = 'Say who may read it, such as ["group:support"]; ["public"] is everybody.'


def _check_id(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("an id has only visible characters, and no spaces at its ends")
    return text


def _check_line(text: str) -> str:
    line = to_one_line(_check_text(text))
    if not line:
        raise ValueError("it is empty")
    return line


def _check_text(text: str) -> str:
    if not is_storable(text):
        raise ValueError("it contains half a character, or the character NUL")
    return text


def _check_link(text: str) -> str:
    if text and not (text.startswith(("https://", "http://")) and text.isprintable()):
        raise ValueError("a link begins with https:// or http:// and contains no control character")
    return text


def _check_moment(moment: datetime) -> datetime:
    if not _EARLIEST <= moment <= _LATEST:
        raise ValueError("it must lie between the years 1000 and 9000")
    return moment


def _check_reader(text: str) -> str:
    token = parse_reader_token(_check_text(text))
    if token.startswith("external:"):
        raise ValueError("write user:<email>, group:<id> or public")
    return token


def _to_clauses(value: object) -> object:
    """Put a single list of tokens into a list."""
    if not isinstance(value, list):
        return value
    if value and all(isinstance(each, str) for each in value):
        return [value]
    if sum(len(each) for each in value if isinstance(each, list)) > _MOST_READERS:
        raise ValueError(f"all lists together have more than {_MOST_READERS:,} readers")
    return value


def _check_not_empty(values: tuple[_Value, ...]) -> tuple[_Value, ...]:
    """Refuse an empty list; not by `min_length`, which would call a list with a fault empty as well."""
    if not values:
        raise PydanticCustomError("too_short", "it is empty")
    return values


LocalId: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=LONGEST_ID), AfterValidator(_check_id)
]
"""An id that a program chose: `SOURCE:` and it are the id of the document."""
_Line: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=1_000), AfterValidator(_check_line)
]
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_line)]
_Text: TypeAlias = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_check_text)]
_Link: TypeAlias = Annotated[str, Field(max_length=2_000), AfterValidator(_check_link)]
_Moment: TypeAlias = Annotated[AwareDatetime, AfterValidator(_check_moment)]
_Token: TypeAlias = Annotated[str, Field(max_length=1_000), AfterValidator(_check_reader)]
# Lists end with their first fault: one for each element would keep the server busy.
_Clause: TypeAlias = Annotated[
    tuple[_Token, ...],
    Field(fail_fast=True, max_length=_MOST_TOKENS),
    AfterValidator(_check_not_empty),
]
_Clauses: TypeAlias = Annotated[
    tuple[_Clause, ...],
    Field(fail_fast=True, max_length=_MOST_CLAUSES),
    AfterValidator(_check_not_empty),
    BeforeValidator(_to_clauses),
    WithJsonSchema(_READERS),
]


class Author(RequestObject):
    name: _Name
    email: Annotated[str | None, Field(max_length=300)] = None


class NewSection(RequestObject):
    """A part of a document."""

    text: _Text
    link: _Link = ""
    """Where a person reads this part; by default that of the document."""
    headings: Annotated[tuple[_Name, ...], Field(fail_fast=True, max_length=10)] = ()
    """Its heading and those above it, outermost first."""


class _Metadata(RequestObject):
    id: LocalId
    title: _Line
    link: _Link = ""
    created_at: _Moment | None = None
    updated_at: _Moment | None = None
    authors: Annotated[tuple[Author, ...], Field(fail_fast=True, max_length=_MOST_NAMES)] = ()
    tags: Annotated[tuple[_Name, ...], Field(fail_fast=True, max_length=_MOST_NAMES)] = ()
    readers: _Clauses


class NewDocument(_Metadata):
    """A document with its text, whole or in sections."""

    model_config = ConfigDict(json_schema_extra={"examples": [dict(_DOCUMENT)]})

    text: _Text | None = None
    sections: Annotated[
        tuple[NewSection, ...], Field(fail_fast=True, max_length=MOST_SECTIONS)
    ] = ()
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"
    """How `text` is to be read."""

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if (self.text is None) == (not self.sections):
            raise ValueError("give either text or sections")
        if sum(len(each.text) for each in self.sections) > LONGEST_TEXT:
            raise ValueError(f"its sections have more than {LONGEST_TEXT:,} characters")
        return self


class NewFile(_Metadata):
    """What is said of a file; what it says is read from it."""

    model_config = ConfigDict(json_schema_extra={"examples": [dict(_FILE)]})

    source: Annotated[str, Field(max_length=100)]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A document of a request that is not taken."""

    id: str | None
    """Its id, if it has a valid one."""
    errors: tuple[FieldError, ...]


def find_faults(error: ValidationError) -> tuple[FieldError, ...]:
    """Return the first faults, without the values: they may be private, and long."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(
        FieldError(
            where=".".join(map(str, one["loc"])) or "document",
            message=_NO_READERS
            if one["loc"] == ("readers",) and one["type"] in ("missing", "too_short")
            else one["msg"].removeprefix("Value error, "),
        )
        for one in found[:_MOST_FAULTS]
    )


def _validate_or_refuse(value: object, _: object) -> NewDocument | Refusal:
    """Return a document or why it is refused: one that is not valid does not keep the others of its request."""
    try:
        return NewDocument.model_validate(value)
    except ValidationError as error:
        return Refusal(_find_id(value), find_faults(error))


def _find_id(value: object) -> str | None:
    given = value.get("id") if isinstance(value, dict) else None
    is_valid = isinstance(given, str) and 0 < len(given) <= LONGEST_ID and given.isprintable()
    return given if is_valid else None


_Item: TypeAlias = Annotated[
    NewDocument | SkipJsonSchema[Refusal], WrapValidator(_validate_or_refuse)
]


class DocumentsBody(RequestObject):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": "tickets", "documents": [_DOCUMENT]}]},
    )

    source: Annotated[str, Field(max_length=100)]
    """Of the kind `ingest`."""
    documents: Annotated[tuple[_Item, ...], Field(min_length=1, max_length=MOST_DOCUMENTS)]
