"""The start page: an overview of the documents, shown without a query."""

from dataclasses import dataclass

from backend.sample import handbook
from backend.store.database import Database
from backend.store.sync import sources
from indexing.index.protocols import Facets

HANDBOOK_QUESTIONS = (
    "Where can I leave my bike at the Leeds office?",
    "What should a customer do when the scanner shows QX-4031?",
    "May I travel first class on a five-hour train ride?",
    "How long does the warranty last?",
    "在宅勤務は週に何日までできますか。",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What an asker could find."""

    documents: int
    sources: int
    questions: tuple[str, ...]
    """That its documents answer, where they are known."""


def overview(database: Database, counts: Facets) -> Overview:
    return Overview(
        documents=sum(counts.sources.values()),
        sources=len(counts.sources),
        questions=HANDBOOK_QUESTIONS if has_handbook(database) else (),
    )


def has_handbook(database: Database) -> bool:
    path = str(handbook())
    return any(one.settings.get("path") == path for one in sources.list_sources(database))
