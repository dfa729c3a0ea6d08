"""Counts, and what a source is at, in words: for terminals and pages alike."""

from collections.abc import Mapping
from types import MappingProxyType

from backend.schemas.models import SourceWire
from backend.store.runs import OPEN

_RUNS: Mapping[str, str] = MappingProxyType(
    {
        "first": "First reading",
        "incremental": "Reading what changed",
        "sync": "Reading what changed",
        "prune": "Looking for what is gone",
        "permissions": "Asking who may read",
        "retry": "Trying failures again",
        "reindex": "Indexing anew",
        "removal": "Removing",
    }
)


def several(number: int, noun: str, plural: str | None = None) -> str:
    """`1 document`, `2 documents`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def called(kind: str) -> str:
    """A kind of run."""
    return _RUNS.get(kind, kind.capitalize())


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in counts.items() if value)


def doing(source: SourceWire) -> str:
    """What goes on, or what it waits for; nothing where nothing does."""
    run = source.run
    if run is None or source.state not in OPEN:
        return ""
    if run.waiting_for and source.state == "waiting":
        return _waits(run.waiting_for)
    rate = f"{source.rate:.1f} a second" if source.rate else ""
    told = (called(run.kind), run.stage, counted(run.counts), rate, run.item)
    waits = _waits(run.waiting_for) if run.waiting_for else ""
    return " · ".join(filter(None, (*told, waits)))


def _waits(reason: str) -> str:
    """A reason is what is waited for, or a sentence that says what happened."""
    return reason if reason[:1].isupper() else f"Waits for {reason}"
