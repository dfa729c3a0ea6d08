"""The sources with their states, as terminals, programs and pages are told them: for their owner alone."""

from backend import encoding
from backend.store import runs
from backend.store import sources as stored
from backend.store.database import Database
from backend.sync import control
from backend.wire import SourceWire


def sources(database: Database) -> list[SourceWire]:
    """All of them, by name."""
    latest, standing = runs.latest(database), control.statuses(database)
    held = {one.name: one for one in stored.listing(database)}
    return [
        encoding.source(held[one.source], one, latest.get(one.source))
        for one in standing
        if one.source in held
    ]


def source(database: Database, name: str) -> SourceWire:
    """Raises AskTheOwner: there is none of this name."""
    found = stored.find(database, name)
    latest = runs.latest(database).get(name)
    return encoding.source(found, control.status(database, name), latest)
