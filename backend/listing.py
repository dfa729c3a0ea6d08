"""The sources with their states, as terminals, programs and pages are told them: for their owner alone."""

from backend import encoding
from backend.store.database import Database
from backend.sync import control
from backend.wire import SourceWire


def sources(database: Database) -> list[SourceWire]:
    """All of them, by name."""
    return [encoding.source(each) for each in control.statuses(database)]


def source(database: Database, name: str) -> SourceWire:
    """Raises AskTheOwner: there is none of this name."""
    return encoding.source(control.status(database, name))
