"""Where a page of a list ends, as a client gives it back for the next one: a moment and an id."""

import re
from datetime import UTC, datetime

from connectors.errors import InvalidInputError

LONGEST_POSITION = 200
_POSITION = re.compile(r"(\d{1,17})-([\w-]{1,100})", re.ASCII)
_MICROSECONDS = 1_000_000


def format_position(moment: datetime, object_id: str) -> str:
    seconds = int(moment.replace(microsecond=0).timestamp())
    return f"{seconds * _MICROSECONDS + moment.microsecond}-{object_id}"


def read_position(given: str) -> tuple[datetime, str]:
    """Read a position in a list: a moment, and an id. Raises InvalidInputError."""
    found = _POSITION.fullmatch(given)
    if found is None:
        raise InvalidInputError("before is not valid.", "Give next of the page before.")
    microseconds = int(found[1])
    moment = datetime.fromtimestamp(microseconds // _MICROSECONDS, UTC)
    return moment.replace(microsecond=microseconds % _MICROSECONDS), found[2]
