"""What sources keep in a checkpoint: a JSON value, and moments as texts that sort by time."""

import json
from datetime import datetime
from typing import Any

from connectors.connector import Checkpoint
from connectors.extraction.result import parsed_time


def stored(since: Checkpoint | None) -> Any:
    """The value of a checkpoint; `None` where there is none, or where it is no JSON: one begins from the start."""
    return value_of(since.value) if since else None


def value_of(text: str) -> Any:
    """As `stored`, of what a checkpoint holds as a text."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def stamp(moment: datetime) -> str:
    """Of a moment in UTC, to the second, as ISO 8601 has it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_stamp(text: str) -> bool:
    moment = parsed_time(text)
    return moment is not None and stamp(moment) == text
