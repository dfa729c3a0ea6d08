"""The status of sources, as their pages show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.schemas.run import RunResponse
from backend.schemas.source import FailureResponse, SourceResponse
from backend.sources.intervals import format_interval
from backend.sources.service import SourceService
from backend.sources.status_text import format_counts, run_label, state_label
from backend.store.sync.runs import OPEN
from backend.web.icons import source_icon
from connectors.registry import SOURCE_KINDS, display_name, primary_setting
from connectors.settings_form import get_path
from connectors.text_cleaning import replace_controls

MOST_FAILURES = 200
MOST_RUNS = 20
_INTERVALS = (300, 900, 3_600, 21_600, 86_400, 604_800)
"""The selectable intervals, in seconds."""


@dataclass(frozen=True, slots=True)
class ActionButton:
    """An action that is possible now; its name is that of its route."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class NextStart:
    label: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatusView:
    source: SourceResponse
    title: str
    """The display name of its kind."""
    icon: str
    where: str
    """What it reads, such as a path."""
    state: str
    """The state as a label."""
    is_open: bool
    """A run is running or waiting: the page refreshes often."""
    doing: str
    """The activity of the run, or what it waits for."""
    error: str
    actions: tuple[ActionButton, ...]
    starts: tuple[NextStart, ...]
    """The scheduled starts, earliest first."""


@dataclass(frozen=True, slots=True)
class RunRow:
    run: RunResponse
    label: str
    state: str
    done: str


@dataclass(frozen=True, slots=True)
class IntervalChoice:
    """The selection of an interval for one kind of run."""

    kind: str
    label: str
    seconds: int
    """The current value; one of the options."""
    options: tuple[tuple[int, str], ...]
    """Pairs of seconds and label."""


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """A source with its failures, runs and intervals."""

    status: SourceStatusView
    failures: tuple[FailureResponse, ...]
    """At most `MOST_FAILURES`."""
    runs: tuple[RunRow, ...]
    intervals: tuple[IntervalChoice, ...]


def list_status_views(sources: SourceService) -> list[SourceStatusView]:
    """List all sources by name."""
    return [_to_view(source) for source in sources.list_statuses()]


def read_details(sources: SourceService, name: str) -> SourceDetails:
    """Read how a source stands, with its latest runs and failures. Raises NotFoundError: there is no such source."""
    status = _to_view(sources.status(name))
    return SourceDetails(
        status,
        tuple(sources.list_failures(name, MOST_FAILURES)),
        tuple(map(_to_row, sources.list_runs(name, MOST_RUNS))),
        tuple(_to_interval_choice(kind, each) for kind, each in status.source.intervals.items()),
    )


def _to_view(source: SourceResponse) -> SourceStatusView:
    run = source.run
    failed = run.error if run and run.error and source.state in {"failed", "interrupted"} else ""
    return SourceStatusView(
        source=source,
        title=display_name(source.kind),
        icon=source_icon(source.kind),
        where=replace_controls(_location(source)),
        state=state_label(source.state),
        is_open=source.state in {*OPEN, "being removed"},
        doing=replace_controls(source.activity),
        error=replace_controls(failed),
        actions=tuple(_list_actions(source)),
        starts=_list_starts(source.next_starts),
    )


def _location(source: SourceResponse) -> str:
    kind = SOURCE_KINDS.get(source.kind)
    entry = primary_setting(kind.settings) if kind else None
    return str(get_path(source.settings, entry.path) or "") if entry else ""


def _list_actions(source: SourceResponse) -> Iterator[ActionButton]:
    match source.state:
        case "being removed":
            return
        case "running" | "waiting":
            yield ActionButton("cancel", "Cancel")
            yield ActionButton("pause", "Pause")
        case "paused":
            yield ActionButton("resume", "Resume")
        case _:
            if not source.has_fixed_readers:
                yield ActionButton("permissions", "Sync permissions")
            yield ActionButton("pause", "Pause")


def _list_starts(starts: Mapping[str, datetime | None]) -> tuple[NextStart, ...]:
    due = [NextStart(run_label(kind), at) for kind, at in starts.items() if at]
    return tuple(sorted(due, key=lambda one: one.at))


def _to_interval_choice(kind: str, seconds: int) -> IntervalChoice:
    choices = sorted({*_INTERVALS, seconds} - {0})
    options = tuple((each, format_interval(timedelta(seconds=each))) for each in (*choices, 0))
    return IntervalChoice(kind, run_label(kind), seconds, options)


def _to_row(run: RunResponse) -> RunRow:
    return RunRow(run, run_label(run.kind), run.state, format_counts(run.counts))
