"""The sources with their states, as terminals, programs and pages are told them: for their owner alone."""

from backend.schemas import conversion
from backend.schemas.models import SourceWire
from backend.store.database import Database
from backend.sync import source_control


def sources(database: Database) -> list[SourceWire]:
    """All of them, by name."""
    return [conversion.source(each) for each in source_control.statuses(database)]


def source(database: Database, name: str) -> SourceWire:
    """Raises ActionRequiredError: there is none of this name."""
    return conversion.source(source_control.status(database, name))
