"""What is there, for who has not asked anything yet."""

from dataclasses import dataclass

from backend.container import Container
from backend.sample import handbook
from backend.schemas import models
from backend.store import sources

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


def overview(container: Container, counts: models.FacetsWire) -> Overview:
    return Overview(
        documents=sum(counts.sources.values()),
        sources=len(counts.sources),
        questions=HANDBOOK_QUESTIONS if _has_handbook(container) else (),
    )


def _has_handbook(container: Container) -> bool:
    path = str(handbook())
    return any(one.settings.get("path") == path for one in sources.listing(container.database))
