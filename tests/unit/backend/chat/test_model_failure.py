"""What is left where a language model fails: the sections found until then, and one sentence."""

from collections.abc import Sequence

import pytest

from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import (
    AnswerDone,
    ChatEvent,
    FailureCause,
    SearchPlanned,
    TextPiece,
    TurnFailed,
)
from backend.chat.intent.search_plan import (
    LinkToRead,
    NotNeeded,
    Queries,
    Searches,
    SearchPlan,
    Summary,
    SwitchedOff,
)
from backend.chat.model_failure import PassageFallback
from backend.chat.passages import KEPT_REASON_TEXTS, REASON_TEXTS, PassagesReason, PassagesShown
from backend.chat.turn import ChatTurn
from backend.search.events import FirstResults, FusedResults, SectionsSelected
from backend.search.models import DocumentNumbers, InferenceSection
from backend.store.accounts.people import NOBODY
from connectors.access import Readers
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import LanguageSupport
from indexing.index.protocols import Evidence, Hit
from indexing.runtime.deadline import Deadline
from tests.support.search import chunk

FAILED = TurnFailed("The language model is busy.", "Ask again.", FailureCause.MODEL)


def _section(document_id: str, text: str) -> InferenceSection:
    best = Hit(chunk(document_id, 0, text), 1.0, Evidence(cosine=0.5, word_share=1.0), ())
    return InferenceSection((best.chunk,), best, (best,))


LEAVE = _section("kb:leave", "Annual leave is 25 days a year for all staff.")
SICK = _section("kb:sick", "Sick pay lasts ten days of a year in any case.")


def _follow(
    events: Sequence[ChatEvent], state: ChatStateContainer | None = None
) -> list[ChatEvent]:
    fallback = PassageFallback(
        embedder=HashingEmbedder(),
        understanding=LanguageSupport({"English": 0.0}),
        numbers=DocumentNumbers(),
        state=state or ChatStateContainer(),
        model="scripted",
    )
    turn = ChatTurn(
        message="How much annual leave is there?",
        readers=Readers.of(),
        deadline=Deadline.after(0),
        person_id=NOBODY,
    )
    return list(fallback.follow(turn, events))


@pytest.mark.parametrize(
    "found",
    [
        [FirstResults((LEAVE,))],
        [FirstResults((SICK,)), FusedResults((LEAVE, SICK))],
        [FirstResults((SICK,)), FusedResults((SICK,)), SectionsSelected((LEAVE,))],
        [FirstResults((LEAVE,)), FusedResults((LEAVE,)), SectionsSelected(())],
    ],
)
def test_the_last_sections_found_are_quoted_after_the_deadline_too(found: list[ChatEvent]) -> None:
    *before, shown, text, done = _follow([*found, FAILED])
    assert before == found
    assert isinstance(shown, PassagesShown)
    assert isinstance(done, AnswerDone)
    assert shown.reason is PassagesReason.MODEL_FAILED
    assert shown.passages[0].document_id == "kb:leave"
    assert text == TextPiece(done.text) == TextPiece(KEPT_REASON_TEXTS[shown.reason])
    assert (done.answered, done.model, done.passages) == (False, None, shown.passages)
    assert done.passages_reason is shown.reason


def test_it_is_said_where_only_an_admin_can_help() -> None:
    refused = TurnFailed("The key is refused.", "Ask.", FailureCause.MODEL_SETUP)
    *_, shown, text, done = _follow([FirstResults((LEAVE,)), refused])
    assert isinstance(shown, PassagesShown)
    assert isinstance(done, AnswerDone)
    assert shown.reason is done.passages_reason is PassagesReason.MODEL_REFUSED
    assert text == TextPiece(KEPT_REASON_TEXTS[shown.reason])
    assert "only an admin" in REASON_TEXTS[shown.reason]
    assert "Ask again later." in REASON_TEXTS[PassagesReason.MODEL_FAILED]


def test_what_was_written_stays() -> None:
    state = ChatStateContainer()
    state.add_answer("It is [[1]](https://w/leave) 25")
    *_, shown, done = _follow([FirstResults((LEAVE,)), FAILED], state)
    assert isinstance(shown, PassagesShown)
    assert isinstance(done, AnswerDone)
    assert shown.reason is PassagesReason.MODEL_BROKE_OFF
    assert (done.text, done.plain) == ("It is [[1]](https://w/leave) 25", "It is 25")
    assert (done.answered, done.model) == (False, "scripted")
    assert done.passages_reason is shown.reason


def test_where_nothing_was_found_the_failure_stays() -> None:
    assert _follow([FirstResults(()), FAILED]) == [FirstResults(()), FAILED]


def test_a_failure_of_the_search_or_the_message_stays() -> None:
    other = TurnFailed("The message is too long for the language model.", "Shorten it.")
    assert _follow([FirstResults((LEAVE,)), other])[-1] == other


@pytest.mark.parametrize(
    "plan",
    [
        Searches(web=Queries("annual leave"), knowledge=NotNeeded()),
        Searches(web=Queries("annual leave"), knowledge=SwitchedOff()),
        Summary("annual leave", (LinkToRead("https://law.example/dk"),)),
    ],
)
def test_what_was_found_before_the_plan_needed_none_of_it_is_not_quoted(plan: SearchPlan) -> None:
    planned = SearchPlanned(plan)
    assert _follow([FirstResults((LEAVE,)), planned, FAILED])[-1] == FAILED


def test_what_the_plan_asks_for_is_quoted() -> None:
    planned = SearchPlanned(Searches(web=NotNeeded(), knowledge=Queries("annual leave")))
    done = _follow([FirstResults((LEAVE,)), planned, FAILED])[-1]
    assert isinstance(done, AnswerDone)
    assert done.passages[0].document_id == "kb:leave"
