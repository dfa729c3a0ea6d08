"""The record of a research run as JSON, as it is stored."""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from backend.research.record.research_record import ResearchRecord
from connectors.errors import InvalidInputError

_RECORD = TypeAdapter(ResearchRecord)


def write_record(record: ResearchRecord) -> str:
    """Return JSON of ASCII characters alone; halves of characters, which no database keeps, are replaced."""
    return json.dumps(_mend(_RECORD.dump_python(record, mode="json")))


def read_record(text: str | bytes) -> ResearchRecord:
    """Read a record from JSON. Raises InvalidInputError: it is no record."""
    try:
        return _RECORD.validate_json(text)
    except ValidationError as error:
        raise InvalidInputError(f"This is no record of a research run: {error}") from error


def _mend(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        case list():
            return [_mend(each) for each in value]
        case dict():
            return {key: _mend(each) for key, each in value.items()}
        case _:
            return value
