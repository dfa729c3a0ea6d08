"""Checkpoints as JSON values, with times as texts that sort by time."""

import json
from datetime import datetime
from typing import Any

from connectors.connector import Checkpoint
from connectors.text_cleaning import parse_time


def load_checkpoint(since: Checkpoint | None) -> Any:
    """Return the value of a checkpoint; None, which starts from the beginning, if there is no valid one."""
    return parse_checkpoint_value(since.value) if since else None


def parse_checkpoint_value(text: str) -> Any:
    """Parse a checkpoint's text; None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def format_timestamp(moment: datetime) -> str:
    """Format a time in UTC as ISO 8601, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_timestamp(text: str) -> bool:
    moment = parse_time(text)
    return moment is not None and format_timestamp(moment) == text
