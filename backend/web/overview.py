"""What is there: for who has not asked anything yet, and for who looks after the sources."""

from dataclasses import dataclass

from backend import encoding, wire
from backend.assembly import Quarry
from backend.sample import handbook
from backend.store import documents, failures, runs, sources
from backend.store.runs import Run
from backend.web.text import harmless

HANDBOOK_QUESTIONS = (
    "Where can I leave my bike at the Leeds office?",
    "What should a customer do when the scanner shows QX-4031?",
    "May I travel first class on a five-hour train ride?",
    "How long does the warranty last?",
    "在宅勤務は週に何日までできますか。",
)
MOST_FAILURES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What an asker could find."""

    documents: int
    sources: int
    questions: tuple[str, ...]
    """That its documents answer, where they are known."""


@dataclass(frozen=True, slots=True)
class SourceState:
    source: wire.SourceWire
    path: str
    failures: tuple[wire.FailureWire, ...]
    """The first of them."""
    error: str
    """Of the last run, if it failed."""


def overview(quarry: Quarry, counts: wire.FacetsWire) -> Overview:
    return Overview(
        documents=sum(counts.sources.values()),
        sources=len(counts.sources),
        questions=HANDBOOK_QUESTIONS if _has_handbook(quarry) else (),
    )


def source_states(quarry: Quarry) -> list[SourceState]:
    """All sources by name: for the owner only."""
    database = quarry.database
    held, failed = documents.counts(database), failures.counts(database)
    latest = runs.latest(database)
    named = _failures_by_source(quarry) if failed else {}
    return [
        SourceState(
            encoding.source(
                one, held.get(one.name, 0), failed.get(one.name, 0), latest.get(one.name)
            ),
            harmless(str(one.settings.get("path", ""))),
            named.get(one.name, ()),
            _error(latest.get(one.name)),
        )
        for one in sources.listing(database)
    ]


def _error(run: Run | None) -> str:
    return harmless(run.error) if run and run.error and run.state != "running" else ""


def _failures_by_source(quarry: Quarry) -> dict[str, tuple[wire.FailureWire, ...]]:
    found: dict[str, tuple[wire.FailureWire, ...]] = {}
    for one in failures.listing(quarry.database):
        before = found.get(one.source, ())
        if len(before) < MOST_FAILURES:
            found[one.source] = (*before, encoding.failure(one))
    return found


def _has_handbook(quarry: Quarry) -> bool:
    path = str(handbook())
    return any(one.settings.get("path") == path for one in sources.listing(quarry.database))
