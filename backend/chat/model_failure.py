"""Where a language model is gone or fails: say so, and of one that fails leave the passages that were found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from backend.chat.answer import quote_closest
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_utils import remove_citations
from backend.chat.events import (
    SEARCH_ERRORS,
    AnswerDone,
    ChatEvent,
    FailureCause,
    SearchPlanned,
    TextPiece,
    TurnFailed,
)
from backend.chat.extractive.answer import extract_answer
from backend.chat.intent.search_plan import Queries, Searches, SearchPlan
from backend.chat.passages import KEPT_REASON_TEXTS, PassagesReason, PassagesShown, QuotedPassage
from backend.chat.turn import ChatTurn
from backend.search.events import FirstResults, FusedResults, SectionsSelected, StepFailed
from backend.search.follow_ups import resolve_follow_up
from backend.search.models import DocumentNumbers, InferenceSection
from backend.search.sections import MAX_SECTIONS
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline

PASSAGES_SECONDS = 10.0
"""Time to choose passages, even if the model has used all that the answer had."""
ASSISTANT_MODEL = "assistant_model"
"""The step that is lost where an assistant names a model that was removed."""

_REASONS: Mapping[FailureCause, PassagesReason] = MappingProxyType(
    {
        FailureCause.MODEL: PassagesReason.MODEL_FAILED,
        FailureCause.MODEL_SETUP: PassagesReason.MODEL_REFUSED,
    }
)
"""Of a model that wrote nothing: whether asking again later helps, or an admin alone."""


def report_missing_model(name: str, other: str) -> StepFailed:
    return StepFailed(
        ASSISTANT_MODEL,
        f"The language model “{name}” is no longer available. “{other}” answers instead.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageFallback:
    """Shows passages in place of what a model that failed did not write."""

    embedder: Embedder
    understanding: LanguageSupport
    numbers: DocumentNumbers
    state: ChatStateContainer
    model: str
    """The name of the chosen one."""

    def follow(self, turn: ChatTurn, events: Iterable[ChatEvent]) -> Iterator[ChatEvent]:
        """Pass on the events of a turn; where the model failed, end with the passages found until then.

        Where nothing was found, the failure stays as it is.
        """
        sections: Sequence[InferenceSection] = ()
        for event in events:
            match event:
                case FirstResults(found) | FusedResults(found) | SectionsSelected(found):
                    sections = found or sections
                    yield event
                case SearchPlanned(plan) if not _asks_knowledge(plan):
                    sections = ()
                    yield event
                case TurnFailed(by_model=True) if passages := self._choose(turn, sections):
                    yield from self._show(event, passages)
                case _:
                    yield event

    def _choose(
        self, turn: ChatTurn, sections: Sequence[InferenceSection]
    ) -> tuple[QuotedPassage, ...]:
        deadline = Deadline.after(PASSAGES_SECONDS, turn.deadline.cancel_token)
        asked = resolve_follow_up(turn.message, turn.history).question
        try:
            found = extract_answer(
                asked, sections[:MAX_SECTIONS], self.embedder, self.understanding, deadline
            )
        except SEARCH_ERRORS:
            return ()
        return quote_closest(found, self.numbers)

    def _show(
        self, failure: TurnFailed, passages: tuple[QuotedPassage, ...]
    ) -> Iterator[ChatEvent]:
        record = self.state.snapshot()
        written = record.text
        reason = PassagesReason.MODEL_BROKE_OFF if written else _REASONS[failure.cause]
        yield PassagesShown(reason, passages)
        if not written:
            yield TextPiece(KEPT_REASON_TEXTS[reason])
        yield AnswerDone(
            text=written or KEPT_REASON_TEXTS[reason],
            plain=remove_citations(written) or KEPT_REASON_TEXTS[reason],
            citations=failure.citations,
            model=(record.replacement or self.model) if written else None,
            answered=False,
            passages=passages,
            passages_reason=reason,
            documents=record.shown_documents,
        )


def _asks_knowledge(plan: SearchPlan) -> bool:
    """Return whether what the search of the message itself has found is used."""
    return isinstance(plan, Searches) and isinstance(plan.knowledge, Queries)
