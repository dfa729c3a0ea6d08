"""What sources keep in a checkpoint: a JSON value, and moments as texts that sort by time."""

import json
from datetime import datetime
from typing import Any

from connectors.connector import Checkpoint
from connectors.text_cleaning import parse_time


def load_checkpoint(since: Checkpoint | None) -> Any:
    """The value of a checkpoint; `None` where there is none, or where it is no JSON: one begins from the start."""
    return parse_checkpoint_value(since.value) if since else None


def parse_checkpoint_value(text: str) -> Any:
    """As `load_checkpoint`, of what a checkpoint holds as a text."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def format_timestamp(moment: datetime) -> str:
    """Of a moment in UTC, to the second, as ISO 8601 has it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_timestamp(text: str) -> bool:
    moment = parse_time(text)
    return moment is not None and format_timestamp(moment) == text
