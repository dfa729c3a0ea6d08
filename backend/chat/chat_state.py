"""Record a turn so that it is complete at every moment, also when it is stopped or fails."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from backend.chat.citations.citation_processor import CitationInfo, CitedDocument, CitedText
from backend.chat.events import AnswerDone, ShownDocument, TurnFailed
from backend.chat.llm.metering import UsageMeter
from backend.search.models import InferenceSection, SearchResult
from backend.store.llm.model_usage import TokenCounts
from indexing.text.markdown_links import safe_link


class TurnStatus(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    """Closed by whoever read its events."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRecord:
    """A snapshot of a turn."""

    status: TurnStatus
    text: str
    """The answer so far, citations linked."""
    reasoning: str
    documents: Mapping[int, CitedDocument]
    """All documents that the model was shown, by citation number."""
    sections: Mapping[int, tuple[InferenceSection, ...]]
    """Their sections, by citation number; none for a file that was put in whole."""
    texts: Mapping[int, tuple[str, ...]]
    """What the model was shown of sources that are no documents of the index, by citation number."""
    citations: tuple[CitationInfo, ...]
    """The first citation of each document so far, in the order of the text."""
    answer: AnswerDone | None
    failure: TurnFailed | None
    replacement: str | None
    """The model that took over, if one did."""

    @property
    def shown_documents(self) -> tuple[ShownDocument, ...]:
        """All documents with their sections, by citation number."""
        return tuple(
            ShownDocument(
                number=number,
                document_id=document.document_id,
                title=document.title,
                link=safe_link(document.link),
                sections=self.sections.get(number, ()),
                kind=document.kind,
            )
            for number, document in self.documents.items()
        )


class ChatStateContainer:
    """The record of a turn: written by the thread that runs it, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status = TurnStatus.RUNNING
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._documents: dict[int, CitedDocument] = {}
        self._sections: dict[int, list[InferenceSection]] = {}
        self._texts: dict[int, list[str]] = {}
        self._citations: list[CitationInfo] = []
        self._answer: AnswerDone | None = None
        self._failure: TurnFailed | None = None
        self._replacement: str | None = None
        self._meter: UsageMeter | None = None

    def follow_usage(self, meter: UsageMeter) -> None:
        """Take what counts the calls of the turn to language models."""
        with self._lock:
            self._meter = meter

    def read_usage(self) -> TokenCounts:
        """Return what all calls of the turn have used so far."""
        with self._lock:
            meter = self._meter
        return sum(meter.read().values(), TokenCounts()) if meter else TokenCounts()

    def add_answer(self, piece: CitedText) -> None:
        with self._lock:
            if isinstance(piece, CitationInfo):
                self._citations.append(piece)
            else:
                self._text.append(piece)

    def add_reasoning(self, text: str) -> None:
        with self._lock:
            self._reasoning.append(text)

    def add_documents(self, documents: Mapping[int, CitedDocument]) -> None:
        with self._lock:
            self._documents = {**documents, **self._documents}

    def add_results(self, result: SearchResult) -> None:
        with self._lock:
            for doc, section in zip(result.docs, result.sections, strict=True):
                document = CitedDocument(doc.document_id, doc.title, doc.link)
                self._documents.setdefault(doc.number, document)
                self._sections.setdefault(doc.number, []).append(section)

    def add_text(self, number: int, text: str) -> None:
        """Record what the model was shown of a source that is no document of the index."""
        with self._lock:
            shown = self._texts.setdefault(number, [])
            if text not in shown:
                shown.append(text)

    def replace_model(self, name: str) -> None:
        with self._lock:
            self._replacement = name

    def finish(self, answer: AnswerDone) -> None:
        with self._lock:
            self._status, self._answer = TurnStatus.FINISHED, answer

    def fail(self, failure: TurnFailed) -> TurnFailed:
        """Record the failure, and return it."""
        with self._lock:
            self._status, self._failure = TurnStatus.FAILED, failure
        return failure

    def stop_if_running(self) -> None:
        with self._lock:
            if self._status is TurnStatus.RUNNING:
                self._status = TurnStatus.STOPPED

    @property
    def has_text(self) -> bool:
        with self._lock:
            return bool(self._text)

    def snapshot(self) -> ChatRecord:
        with self._lock:
            return ChatRecord(
                status=self._status,
                text="".join(self._text),
                reasoning="".join(self._reasoning),
                documents=dict(sorted(self._documents.items())),
                sections={number: tuple(found) for number, found in self._sections.items()},
                texts={number: tuple(shown) for number, shown in self._texts.items()},
                citations=tuple(self._citations),
                answer=self._answer,
                failure=self._failure,
                replacement=self._replacement,
            )
