"""A conversation as research is told of it: answers without markers, with the quotes that their citations led to."""

from dataclasses import replace
from typing import Any

import pytest

from backend.chat.citations.citation_processor import SourceKind
from backend.conversations.history import NO_ANSWER, TurnHistory
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import PastMessage, ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.runs.past_messages import make_past_messages
from backend.search.llm_protocol import ChatMessage
from backend.store.chat.messages import Message
from connectors.document import Span
from tests.support.conversations import make_message

LEAVE = "Parents have 26 weeks of leave."
PAY = "It is paid in full by the state."


def cite(number: int, quote: str, **facts: object) -> dict[str, Any]:
    return {
        "number": number,
        "document_id": f"kb:{number}",
        "title": f"Title {number}",
        "link": f"https://a.example/{number}",
        "kind": "document",
        "quote": quote,
        "section": 2,
        "span": (4, 4 + len(quote)),
        "score": 0.9,
        "verdict": "supported",
        **facts,
    }


def make_answer(text: str, *citations: dict[str, Any], rests_on: tuple[str, ...] = ()) -> Message:
    message = make_message("assistant", text, {"citations": list(citations)})
    return replace(message, document_ids=rests_on)


def tell(*messages: Message) -> tuple[PastMessage, ...]:
    said = tuple(ChatMessage(one.role, one.text) for one in messages)
    return make_past_messages(messages, TurnHistory(said, frozenset()))


@pytest.mark.parametrize("first", ["[1]", "[[1]](https://a.example/1)"])
def test_an_answer_has_no_markers_and_the_quotes_of_its_citations(first: str) -> None:
    answer = make_answer(
        f"{LEAVE} {first} {PAY} [2]",
        cite(1, "26 weeks"),
        cite(2, "paid in full", kind="url", document_id="https://a.example/2"),
        rests_on=("kb:1", "kb:3"),
    )
    asked, told = tell(make_message("user", "How long is [1]?"), answer)
    assert asked == PastMessage("user", "How long is [1]?")
    assert (told.text, told.rests_on) == (f"{LEAVE} {PAY}", ("kb:1", "kb:3"))
    one, two = told.references
    assert (one.exact_quote, one.document_id, one.url) == ("26 weeks", "kb:1", "https://a.example/1")  # fmt: skip
    assert (one.section, one.span, one.relevance_score) == (2, Span(4, 12), 0.9)
    assert (two.document_id, two.url, two.title) == (None, "https://a.example/2", "Title 2")
    assert [each.answer_chunk for each in told.references] == [LEAVE, PAY]
    assert all(each.answer_chunk_position.of(told.text) == each.answer_chunk for each in told.references)  # fmt: skip


def test_a_citation_without_a_quote_or_a_place_is_no_reference() -> None:
    answer = make_answer(f"{LEAVE} [1] {PAY} [2]", cite(1, " "), cite(2, "paid"), cite(2, "gone"))
    (told,) = tell(answer)
    assert [(one.exact_quote, one.answer_chunk) for one in told.references] == [("paid", PAY)]


def test_an_answer_that_may_not_be_read_says_and_quotes_nothing() -> None:
    answer = make_answer(f"{LEAVE} [1]", cite(1, "26 weeks"), rests_on=("kb:1",))
    made = TurnHistory((ChatMessage("assistant", NO_ANSWER),), frozenset())
    assert make_past_messages([answer], made) == (PastMessage("assistant", ""),)


def test_what_answered_nothing_establishes_nothing() -> None:
    said = "The language model did not answer. These passages come closest."
    assert tell(make_message("assistant", said, {"answered": False})) == (
        PastMessage("assistant", ""),
    )


@pytest.mark.parametrize("kind", list(SourceKind))
def test_references_of_every_kind_are_stored_and_read(kind: SourceKind) -> None:
    answer = make_answer(f"{LEAVE} [1]", cite(1, "26 weeks", kind=kind.value), rests_on=("kb:1",))
    record = ResearchRecord(request=ResearchRequest(question="And pay?", history=tell(answer)))
    assert record.request.history[0].references
    assert read_record(write_record(record)) == record
