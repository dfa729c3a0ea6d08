"""The events of a research run as they are stored: numbered from 1 without a gap, each with the documents that it says something of."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from backend.chat.citations.citation_processor import SourceKind
from backend.conversations.turn_events import EncodedEvent
from backend.research.events import (
    ActionDone,
    ActionStarted,
    EarlierFindingsUsed,
    IntermediateReportCitedDocs,
    PlanMade,
    ReportChecked,
    ReportPiece,
    ResearchDone,
    ResearchEvent,
    RoundDecided,
    SourceFound,
    TaskDone,
    TaskStarted,
)
from backend.research.record.sources import NumberedSource
from backend.store.research.research_runs import ResearchState

Encode: TypeAlias = Callable[[ResearchEvent], EncodedEvent | None]
"""Puts an event into the form in which clients receive it; None for what is not sent."""


@dataclass(frozen=True, slots=True)
class DocumentedEvent:
    event: EncodedEvent
    places: tuple[int, ...] = ()
    """Of the documents that it says something of, in the list of those of its run."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    number: int
    name: str
    data: Mapping[str, Any]
    places: tuple[int, ...]


def list_documents(event: ResearchEvent) -> Sequence[str]:
    """Return the ids of the documents that an event says something of; anybody may read what is of the web."""
    match event:
        case EarlierFindingsUsed(documents=documents):
            return documents
        case PlanMade(plan=plan):
            return plan.rests_on
        case TaskStarted(task=task):
            return task.rests_on
        case ActionStarted(documents=documents) | ActionDone(documents=documents):
            return documents
        case SourceFound(source=source):
            return list_documents_of([source])
        case IntermediateReportCitedDocs(sources=sources):
            return list_documents_of(sources)
        case TaskDone(report=report):
            return report.documents
        case RoundDecided(tasks=tasks, documents=documents):
            return [*documents, *(one for task in tasks for one in task.rests_on)]
        case ReportChecked(documents=documents) | ReportPiece(documents=documents):
            return documents
        case ResearchDone(report=report):
            return report.documents
        case _:
            return ()


def list_documents_of(sources: Iterable[NumberedSource]) -> list[str]:
    """Return the documents of the index among sources, and those that findings among them rest on."""
    return [document for one in sources for document in _list_documents_of_source(one)]


def _list_documents_of_source(source: NumberedSource) -> Sequence[str]:
    match source.kind:
        case SourceKind.WEB:
            return ()
        case SourceKind.RESEARCH:
            return source.rests_on
        case _:
            return (source.document_id,)


def encode_state(state: ResearchState, problem: str | None = None) -> EncodedEvent:
    """Return the event that says in which state a run is left; the last one of a run is `done`, `stopped` or `failed`."""
    match state:
        case "done" | "stopped" | "failed":
            return EncodedEvent(state, json.dumps({"problem": problem}))
        case _:
            return EncodedEvent("state", json.dumps({"state": state}))


def encode_portion(first: int, events: Sequence[DocumentedEvent]) -> str:
    numbered = (
        f"[{number},{json.dumps(one.event.name)},{one.event.data},{json.dumps(one.places)}]"
        for number, one in enumerate(events, first)
    )
    return f"[{','.join(numbered)}]"


def decode_portions(payloads: Iterable[str], after: int = 0) -> Iterator[StoredEvent]:
    """Yield the events whose number is greater than `after`."""
    for payload in payloads:
        for number, name, data, places in json.loads(payload):
            if number > after:
                yield StoredEvent(number, name, data, tuple(places))


class DocumentPlaces:
    """The list of the documents of a run, and the place of each. Not safe to use from several threads."""

    def __init__(self, document_ids: Sequence[str]) -> None:
        self._places = {document: place for place, document in enumerate(document_ids)}

    @property
    def document_ids(self) -> list[str]:
        return list(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def find(self, document_ids: Iterable[str]) -> tuple[int, ...]:
        """Return the places of documents; new ones are added at the end."""
        return tuple(
            sorted({self._places.setdefault(each, len(self._places)) for each in document_ids})
        )
