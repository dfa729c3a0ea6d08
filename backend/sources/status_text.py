"""What sources and runs do, in words: the same on the command line, in the API and on the pages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from indexing.ingestion.progress import Embedding, Progress
from indexing.text.normalization import pluralize

if TYPE_CHECKING:
    from backend.store.sync.runs import Run

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
_STAGES: Mapping[str, str] = MappingProxyType(
    {
        "starting": "Starting",
        "repairing": "Checking the index",
        "indexing": "Indexing",
        "listing": "Comparing with the source",
        "amending": "Changing who may read",
        "removing": "Removing",
    }
)
_STATES: Mapping[str, str] = MappingProxyType({"done": "up to date", "running": "syncing"})
_LONG_DOCUMENT = 100
"""A document of so many passages shows how many of them are embedded."""
_FIRST_GUESS = 3.0
"""Seconds that a stage must have run before its remaining time is shown."""


def state_label(state: str) -> str:
    """Return what people call this state of a source."""
    return _STATES.get(state, state)


def run_label(kind: str) -> str:
    """Return what people call a run of this kind."""
    return _RUNS.get(kind, kind.capitalize())


def format_counts(counts: Mapping[str, int]) -> str:
    """Return such as `1 document, 3 unchanged`; the name of what can be counted ends in s."""
    return ", ".join(
        pluralize(value, name.removesuffix("s"), name) for name, value in counts.items() if value
    )


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
        case dict():
            parts = (f"{name} {_format_value(each)}" for name, each in value.items())
            return "; ".join(parts) or "nothing"
        case _:
            return str(value)


def describe_activity(run: "Run", progress: Progress) -> str:
    """Return what an open run does or waits for."""
    waits = _describe_wait(run.waiting_for) if run.waiting_for else ""
    if waits and run.state == "waiting":
        return waits
    is_embedding = progress.embedding is not None
    return " · ".join(filter(None, (describe_progress(progress), "" if is_embedding else waits)))


def describe_progress(progress: Progress) -> str:
    """Return such as `Indexing 120 of 3,400 documents · 8.2 a second · about 7 minutes left · embedding Leave`."""
    stage = _STAGES.get(progress.stage, progress.stage.capitalize())
    rate = f"{progress.rate:.1f} a second" if progress.done and progress.rate else ""
    doing = _describe_embedding(progress.embedding) if progress.embedding else progress.item
    facts = (f"{stage} {_format_done(progress)}".strip(), rate, _format_left(progress), doing)
    return " · ".join(filter(None, facts))


def _format_done(progress: Progress) -> str:
    if progress.total is not None:
        return f"{progress.done:,} of {pluralize(progress.total, 'document')}"
    return f"{pluralize(progress.done, 'document')} so far" if progress.done else ""


def _format_left(progress: Progress) -> str:
    left = progress.seconds_left
    if left is None or progress.done < _FIRST_GUESS * progress.rate:
        return ""
    minutes = round(left / 60)
    if minutes < 1:
        return "less than a minute left"
    if minutes < 60:
        return f"about {pluralize(minutes, 'minute')} left"
    return f"about {pluralize(round(minutes / 60), 'hour')} left"


def _describe_embedding(embedding: Embedding) -> str:
    place = f", passage {embedding.done + 1:,} of {embedding.total:,}"
    return f"embedding {embedding.item}{place if embedding.total >= _LONG_DOCUMENT else ''}"


def _describe_wait(reason: str) -> str:
    """Describe what a source waits for: a sentence that says what happened, or a part of one."""
    return reason if reason[:1].isupper() else f"Waiting: {reason}"


def describe_no_decision(source: str) -> str:
    return f"Source {source!r} has no run that waits for a decision about missing documents."
