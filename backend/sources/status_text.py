"""Counts and the activity of a source as text, for the command line and the pages."""

from collections.abc import Mapping
from types import MappingProxyType

from backend.schemas.source import SourceResponse
from backend.store.runs import OPEN

_RUNS: Mapping[str, str] = MappingProxyType(
    {
        "first": "First sync",
        "incremental": "Content sync",
        "sync": "Content sync",
        "prune": "Deletion check",
        "permissions": "Permission sync",
        "retry": "Retry of failures",
        "reindex": "Reindexing",
        "removal": "Removal",
    }
)


def run_label(kind: str) -> str:
    """Return what people call a run of this kind."""
    return _RUNS.get(kind, kind.capitalize())


def format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in counts.items() if value)


def format_details(details: Mapping[str, object]) -> str:
    """Return the details of an audit entry; one that was refused has its reason alone."""
    if "refused" in details:
        return str(details["refused"])
    return ", ".join(f"{name}: {_format_value(value)}" for name, value in details.items())


def _format_value(value: object) -> str:
    match value:
        case None:
            return "default"
        case bool():
            return "yes" if value else "no"
        case list():
            return " and ".join(map(str, value)) or "nothing"
        case _:
            return str(value)


def describe_activity(source: SourceResponse) -> str:
    """Return what the current run does or waits for; empty without one."""
    run = source.run
    if run is None or source.state not in OPEN:
        return ""
    if run.waiting_for and source.state == "waiting":
        return _describe_wait(run.waiting_for)
    rate = f"{source.rate:.1f} a second" if source.rate else ""
    activity = (run_label(run.kind), run.stage, format_counts(run.counts), rate, run.item)
    waits = _describe_wait(run.waiting_for) if run.waiting_for else ""
    return " · ".join(filter(None, (*activity, waits)))


def _describe_wait(reason: str) -> str:
    """A reason is a sentence that says what happened, or a part of one."""
    return reason if reason[:1].isupper() else f"Waiting: {reason}"
