"""Turns run in their process, and are followed, stopped and ended by any other."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.api.answer_events import TurnEncoder, plain_html
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.events import AnswerDone, ChatEvent, TextPiece, TurnFailed
from backend.chat.readable_ids import OwnMemories, make_memory_reference, make_own_memories
from backend.chat.turn import ChatTurn
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.fast_model import FastModel
from backend.conversations.followed_turn import (
    AnswerPlace,
    FollowedAnswer,
    FollowPosition,
    TurnFollower,
    WithheldError,
)
from backend.conversations.history import NO_ANSWER, make_history
from backend.conversations.interrupted_turns import end_interrupted
from backend.conversations.turn_events import EncodedEvent, NumberedEvent, encode_portion
from backend.conversations.turn_notifications import TurnNotifications
from backend.conversations.turn_runner import (
    Answering,
    TurnOrder,
    TurnRefusedError,
    TurnRunner,
)
from backend.search import media_type_labels
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.store.accounts.people import NOBODY
from backend.store.chat import conversations, memories, messages, turns
from backend.store.chat.messages import Message
from backend.store.chat.new_messages import Begun
from backend.store.chat.turns import LEASE, Portion, Progress, TurnState
from backend.store.database import Database, open_database
from backend.store.database_errors import PATIENCE_SECONDS
from connectors.access import Readers
from connectors.errors import NotFoundError, TemporarilyUnavailableError
from connectors.extraction.registry import DOCX, PDF
from indexing.chunking.chunk import ChunkRange
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import Facets, Filters
from indexing.runtime.deadline import CancelToken, Deadline
from tests.support.conversations import (
    OWNER,
    ask,
    begin,
    finish,
    own_no_memories,
    store,
    text_portion,
)
from tests.support.server_processes import wait_for

SOON = 30.0
DONE = AnswerDone(text="One two.", plain="One two.", citations=(), model=None)


class Shelf:
    """An index of documents by their ids, some of which may be read."""

    def __init__(self, *readable: str) -> None:
        self.readable = set(readable)
        self.calls = 0
        self.visible = Facets(sources={}, media_types={}, people={}, months={})

    def chunks(self, ranges: list[ChunkRange], readers: Readers, deadline: Deadline) -> list[Any]:
        del readers, deadline
        self.calls += 1
        return [["a chunk"] if one.document_id in self.readable else [] for one in ranges]

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        del filters, readers, deadline
        return self.visible


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def follow(follower: TurnFollower, after: int = 0) -> Iterator[NumberedEvent]:
    """Look at a turn until its end, or until the follower is gone."""
    position = FollowPosition(after)
    while not follower.cancel_token.is_cancelled:
        seen = follower.look(position)
        yield from seen.events
        if seen.is_over:
            return
        position = seen.position
        time.sleep(0.02)


class Process:
    """A server process with its turns."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.news = TurnNotifications()
        self.runner = TurnRunner(lambda: self.database, self._hold_slot, self.news.announce)
        self.refusal: TurnRefusedError | None = None
        self.shelf = Shelf()
        self.own_memories: OwnMemories = own_no_memories
        self.fast_model: FastModel | None = None

    @contextmanager
    def _hold_slot(self, key: str, cancel_token: CancelToken) -> Iterator[None]:
        del key, cancel_token
        if self.refusal:
            raise self.refusal
        yield

    def run(self, begun: Begun, answer: Callable[[ChatTurn], Iterator[ChatEvent]]) -> None:
        def write(
            turn: ChatTurn, state: ChatStateContainer, path: Sequence[Message]
        ) -> Iterator[ChatEvent]:
            del state
            assert path[-1] == begun.question
            return answer(turn)

        order = TurnOrder(
            message_id=begun.answer.id,
            question=begun.question,
            person_id=NOBODY,
            turn_key="ann",
            readers_now=lambda: Readers.of("public"),
            own_memories=self.own_memories,
        )
        answering = Answering(
            index=self.shelf,  # type: ignore[arg-type]
            answer=write,
            seconds=SOON,
            encoder=TurnEncoder(begun.question.text, plain_html),
            read_filters=lambda _: Filters(),
            open_fast_model=lambda _: nullcontext(self.fast_model),
        )
        self.runner.begin(order, answering)

    def follow(self, message: Message, after: int = 0) -> list[NumberedEvent]:
        return list(follow(self.follower(message), after))

    def follower(self, message: Message) -> TurnFollower:
        place = AnswerPlace(OWNER, message.conversation_id)
        return TurnFollower(
            database=self.database,
            answer=FollowedAnswer(message.id, lambda: place, is_own=True),
            index=self.shelf,  # type: ignore[arg-type]
            readers_now=lambda: Readers.of("public"),
            own_memories=self.own_memories,
            seconds=SOON,
            news=self.news,
            is_announced=lambda: self.runner.runs(message.id),
            cancel_token=CancelToken(),
        )

    def read(self, message: Message) -> Message:
        return messages.get(self.database, OWNER, message.conversation_id, message.id)


@pytest.fixture
def process(database: Database) -> Iterator[Process]:
    process = Process(database)
    yield process
    assert process.runner.interrupt_all(SOON)


def _wait_for(happened: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


class Writing:
    """An answer that waits in its middle until it is let go on, or its turn ends."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.is_closed = threading.Event()

    def __call__(self, turn: ChatTurn) -> Iterator[ChatEvent]:
        try:
            yield TextPiece("One ")
            while not self.go_on.wait(0.01):
                turn.deadline.check()
            yield TextPiece("two.")
            yield DONE
        finally:
            self.is_closed.set()


@pytest.fixture
def writing() -> Iterator[Writing]:
    writing = Writing()
    yield writing
    writing.go_on.set()
    assert writing.is_closed.wait(SOON)


def test_another_process_follows_from_any_event_and_stops_it(
    database: Database, process: Process, writing: Writing
) -> None:
    begun, other = begin(database), Process(database)
    process.run(begun, writing)
    followed = follow(other.follower(begun.answer))
    assert next(followed) == NumberedEvent(1, "text", {"text": "One "})
    turns.ask_to_stop(database, begun.answer.id, datetime.now(UTC))
    rest = list(followed)
    assert rest == [NumberedEvent(2, "stopped", {"detail": "The answer was stopped."})]
    assert process.follow(begun.answer, 1) == rest
    assert writing.is_closed.wait(SOON)
    stored = other.read(begun.answer)
    assert (stored.status, stored.text) == ("stopped", "One ")
    _wait_for(lambda: not process.runner.runs(begun.answer.id))


def test_an_answer_is_stored_to_its_end(
    database: Database, process: Process, writing: Writing
) -> None:
    begun = begin(database)
    process.run(begun, writing)
    writing.go_on.set()
    assert [one.name for one in process.follow(begun.answer)] == ["text", "text", "done"]
    stored = process.read(begun.answer)
    assert (stored.status, stored.text) == ("finished", "One two.")
    assert stored.answer is not None
    assert "question" not in stored.answer
    assert not process.follower(begun.answer).has_more(3)


def test_a_turn_whose_lease_has_ended_is_interrupted_and_its_writer_gives_up(
    database: Database, process: Process, writing: Writing
) -> None:
    """As where a process was held for long: what it reports when it goes on is not accepted."""
    begun = begin(database)
    store(database, begun.answer.id, text_portion(begun.answer.id, 1, "One "), None, _past())
    end_interrupted(database)
    found = process.follow(begun.answer)
    assert [one.name for one in found] == ["text", "interrupted"]
    assert process.read(begun.answer).text == "One "
    process.run(begun, writing)
    assert writing.is_closed.wait(SOON)
    assert process.follow(begun.answer) == found


def test_an_interrupted_answer_keeps_its_citations_and_what_it_rests_on(
    database: Database, process: Process
) -> None:
    begun = begin(database)
    cited = {"number": 1, "document_id": "a:x", "title": "X", "link": "", "kind": "document"}
    passage = {"document_id": "a:x", "section": 1, "span": [3, 9], "heading_path": []}
    passage |= {"source": "a", "updated_at": None, "content": "One."}
    events = [
        EncodedEvent("selected", json.dumps({"results": [passage]})),
        EncodedEvent("text", '{"text":"One "}'),
        EncodedEvent("citation", json.dumps(cited)),
        EncodedEvent("text", '{"text":"[1]."}'),
    ]
    portion = Portion(begun.answer.id, 1, 4, encode_portion(1, events), ("a:x",))
    store(database, begun.answer.id, portion, None, _past())
    end_interrupted(database)
    found = process.read(begun.answer)
    assert (found.status, found.text, found.document_ids) == ("interrupted", "One [1].", ("a:x",))
    assert found.answer is not None
    (citation,) = found.answer["citations"]
    assert citation.items() >= {**cited, "quote": "One.", "verdict": "unchecked"}.items()
    assert (citation["section"], citation["span"]) == (1, [3, 9])
    assert [one["source"] for one in found.answer["documents"]] == ["a"]


def test_a_follower_who_goes_away_stops_nothing(
    database: Database, process: Process, writing: Writing
) -> None:
    begun = begin(database)
    process.run(begun, writing)
    follower = process.follower(begun.answer)
    followed = follow(follower)
    assert next(followed).number == 1
    follower.cancel_token.cancel()
    assert list(followed) == []
    assert not writing.is_closed.is_set()
    writing.go_on.set()
    assert [one.name for one in process.follow(begun.answer, 1)] == ["text", "done"]


def _past() -> datetime:
    return datetime.now(UTC) - LEASE - timedelta(seconds=1)


@pytest.mark.parametrize("away", [0, PATIENCE_SECONDS + 10])
def test_a_turn_whose_process_lives_is_not_interrupted(
    database: Database, process: Process, writing: Writing, away: int
) -> None:
    """Not even where the database could not be written to for as long as a statement waits for a lock."""
    begun, renewed = begin(database), datetime.now(UTC) - timedelta(seconds=away)
    store(database, begun.answer.id, None, None, renewed)
    end_interrupted(database)
    assert process.read(begun.answer).status == "running"
    process.run(begun, writing)


def test_all_turns_end_with_the_process(
    database: Database, process: Process, writing: Writing
) -> None:
    begun = begin(database)
    process.run(begun, writing)
    assert next(follow(process.follower(begun.answer))).number == 1
    assert process.runner.interrupt_all(SOON)
    assert turns.list_open(database) == []
    stored = process.read(begun.answer)
    assert (stored.status, stored.text) == ("interrupted", "One ")


def test_deleting_the_conversation_stops_the_turn(
    database: Database, process: Process, writing: Writing
) -> None:
    begun = begin(database)
    process.run(begun, writing)
    followed = follow(process.follower(begun.answer))
    assert next(followed).number == 1
    conversations.remove(database, OWNER, begun.answer.conversation_id)
    with pytest.raises(NotFoundError):
        list(followed)
    assert writing.is_closed.wait(SOON)
    _wait_for(lambda: not process.runner.runs(begun.answer.id))


def _fail(turn: ChatTurn) -> Iterator[ChatEvent]:
    del turn
    yield TextPiece("One ")
    yield TurnFailed("The model failed.", "Ask again.")


def _raise(turn: ChatTurn) -> Iterator[ChatEvent]:
    del turn
    yield TextPiece("One ")
    raise TemporarilyUnavailableError("The index is away.", timedelta(seconds=5))


def _break(turn: ChatTurn) -> Iterator[ChatEvent]:
    del turn
    yield TextPiece("One ")
    raise ZeroDivisionError("a mistake")


def _say_nothing_at_the_end(turn: ChatTurn) -> Iterator[ChatEvent]:
    del turn
    yield TextPiece("One ")


@pytest.mark.parametrize(
    ("answer", "status", "detail"),
    [
        (_fail, 503, "The model failed."),
        (_raise, 503, "The index is away."),
        (_say_nothing_at_the_end, 500, "An internal error"),
        (_break, 500, "An internal error"),
    ],
)
def test_a_turn_that_fails_says_why(
    database: Database,
    process: Process,
    answer: Callable[[ChatTurn], Iterator[ChatEvent]],
    status: int,
    detail: str,
) -> None:
    begun = begin(database)
    process.run(begun, answer)
    assert [one.name for one in process.follow(begun.answer)] == ["text", "error"]
    stored = process.read(begun.answer)
    assert (stored.status, stored.text) == ("failed", "One ")
    assert stored.problem is not None
    assert stored.problem["status"] == status
    assert stored.problem["detail"].startswith(detail)


@pytest.mark.parametrize("answer", [_break, _say_nothing_at_the_end])
def test_an_error_of_the_program_is_in_the_log_with_the_message(
    database: Database,
    process: Process,
    caplog: pytest.LogCaptureFixture,
    answer: Callable[[ChatTurn], Iterator[ChatEvent]],
) -> None:
    begun = begin(database)
    process.run(begun, answer)
    assert process.follow(begun.answer)[-1].name == "error"

    def list_records() -> list[logging.LogRecord]:
        return [one for one in caplog.records if one.name == "quarry.turns"]

    # A turn that says nothing at its end is logged after its event.
    wait_for(list_records)
    (record,) = list_records()
    assert f"The answer {begun.answer.id} " in record.getMessage()
    assert (answer is _break) == ("a mistake" in (record.exc_text or str(record.exc_info)))


def test_a_turn_that_cannot_be_stored_keeps_no_other_from_it(
    database: Database,
    process: Process,
    writing: Writing,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sick, well = begin(database), begin(database)
    store_all = turns.store

    def refuse(
        database: Database, progress: Sequence[Progress], now: datetime
    ) -> dict[int, TurnState]:
        written = [one for one in progress if one.message_id == sick.answer.id and one.portion]
        if any("One" in one.portion.payload for one in written if one.portion):
            raise ZeroDivisionError("a mistake")
        return store_all(database, progress, now)

    monkeypatch.setattr(turns, "store", refuse)
    process.run(sick, _say_nothing_at_the_end)
    process.run(well, writing)
    (event,) = process.follow(sick.answer)
    assert (event.number, event.name) == (1, "error")
    writing.go_on.set()
    assert [one.name for one in process.follow(well.answer)] == ["text", "text", "done"]
    assert process.read(sick.answer).status == "failed"
    assert f"the answer {sick.answer.id} has written cannot be stored" in caplog.text


def test_a_turn_of_which_nothing_can_be_stored_is_let_go(
    database: Database,
    process: Process,
    writing: Writing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sick, well = begin(database), begin(database)
    store_all = turns.store

    def refuse(
        database: Database, progress: Sequence[Progress], now: datetime
    ) -> dict[int, TurnState]:
        if any(one.message_id == sick.answer.id for one in progress):
            raise ZeroDivisionError("a mistake")
        return store_all(database, progress, now)

    monkeypatch.setattr(turns, "store", refuse)
    process.run(sick, _say_nothing_at_the_end)
    process.run(well, writing)
    _wait_for(lambda: not process.runner.runs(sick.answer.id))
    writing.go_on.set()
    assert process.follow(well.answer)[-1].name == "done"


def test_a_turn_that_gets_no_slot_fails(
    database: Database, process: Process, writing: Writing
) -> None:
    begun = begin(database)
    process.refusal = TurnRefusedError("Quarry is busy.", "Try again in 3 s.")
    process.run(begun, writing)
    (event,) = process.follow(begun.answer)
    assert (event.name, event.data["detail"], event.data["advice"]) == (
        "error",
        "Quarry is busy.",
        "Try again in 3 s.",
    )
    writing.is_closed.set()


def test_what_was_found_and_may_not_be_read_any_more_is_left_out(
    database: Database, process: Process
) -> None:
    """The answer does not rest on it: its number stays, so that none is missing."""
    begun = begin(database)
    data = '{"results":[{"document_id":"wiki:a"},{"document_id":"wiki:b"}]}'
    portion = text_portion(begun.answer.id, 2, "One ", documents=("wiki:a",))
    payload = f'[[1,"results",{data}],{portion.payload[1:]}'
    whole = type(portion)(begun.answer.id, 1, 2, payload, portion.document_ids)
    store(database, begun.answer.id, whole, None, datetime.now(UTC))
    followed = follow(process.follower(begun.answer))
    process.shelf.readable = {"wiki:a"}
    assert next(followed).data == {"results": [{"document_id": "wiki:a"}]}
    assert next(followed).number == 2
    process.shelf.readable = {"wiki:b"}
    with pytest.raises(WithheldError):
        process.follow(begun.answer)


def test_filters_that_name_what_may_not_be_seen_any_more_are_left_out(
    database: Database, process: Process
) -> None:
    begun = begin(database)
    inferred = [
        {"kind": "date", "meaning": "updated 2026-01-01 or later"},
        {"kind": "source", "meaning": "finance, wiki"},
        {"kind": "source", "meaning": "wiki"},
        {"kind": "person", "meaning": "Ann Doe"},
        {"kind": "person", "meaning": "Bob Roe"},
        {"kind": "type", "meaning": media_type_labels.display_name(PDF)},
        {"kind": "type", "meaning": media_type_labels.display_name(DOCX)},
    ]
    data = json.dumps({"sources": ["finance"], "inferred": inferred})
    portion = Portion(begun.answer.id, 1, 1, f'[[1,"narrowed",{data}]]', None)
    store(database, begun.answer.id, portion, None, datetime.now(UTC))
    process.shelf.visible = Facets(
        sources={"wiki": 3},
        media_types={PDF: 3},
        people={"bob@example.com": PersonCount("Bob Roe", 1)},
        months={},
    )
    shown = next(follow(process.follower(begun.answer))).data
    assert [one["meaning"] for one in shown["inferred"]] == [
        "updated 2026-01-01 or later",
        "wiki",
        "Bob Roe",
        media_type_labels.display_name(PDF),
    ]
    # The asker chose this one.
    assert shown["sources"] == ["finance"]


def test_a_follower_looks_at_its_rights_again_every_second(
    database: Database, process: Process
) -> None:
    begun = begin(database)
    store(
        database,
        begun.answer.id,
        text_portion(begun.answer.id, 1, "One ", documents=("wiki:a",)),
        None,
        datetime.now(UTC),
    )
    process.shelf.readable = {"wiki:a"}
    followed = follow(process.follower(begun.answer))
    assert next(followed).number == 1
    process.shelf.readable = set()
    with pytest.raises(WithheldError):
        next(followed)


def test_the_model_is_told_what_may_be_read(database: Database) -> None:
    first = begin(database, "one?")
    finish(database, first.answer.id, "Of a.", documents=("wiki:a",))
    second = ask(database, first.answer.conversation_id, first.answer.id, "two?")
    finish(database, second.answer.id, "Of b.", documents=("wiki:b",))
    third = ask(database, first.answer.conversation_id, second.answer.id, "three?")
    path = messages.list_path(database, third.question.id, 50)
    shelf = Shelf("wiki:b")
    gate = AnswerGate(
        index=shelf,  # type: ignore[arg-type]
        readers=Readers.of("public"),
        own_memories=own_no_memories,
        deadline=Deadline.after(SOON),
    )
    history = make_history(path[:-1], gate)
    assert [(one.role, one.text) for one in history.messages] == [
        ("user", "one?"),
        ("assistant", NO_ANSWER),
        ("user", "two?"),
        ("assistant", "Of b."),
    ]
    assert history.document_ids == {"wiki:b"}
    assert shelf.calls == 1


def test_the_model_is_told_nothing_that_rests_on_a_memory_that_is_gone(database: Database) -> None:
    memory = memories.add(database, OWNER, "I sit in Leeds.")
    reference = make_memory_reference(memory.id)
    first = begin(database, "one?")
    finish(database, first.answer.id, "Of Leeds.", documents=(reference,))
    second = ask(database, first.answer.conversation_id, first.answer.id, "two?")
    path = messages.list_path(database, second.question.id, 50)
    gate = AnswerGate(
        index=Shelf(),  # type: ignore[arg-type]
        readers=Readers.of("public"),
        own_memories=make_own_memories(database, OWNER),
        deadline=Deadline.after(SOON),
    )
    told = make_history(path[:-1], gate)
    assert [one.text for one in told.messages] == ["one?", "Of Leeds."]
    assert told.document_ids == {reference}
    memories.remove(database, OWNER, memory.id)
    assert [one.text for one in make_history(path[:-1], gate).messages] == ["one?", NO_ANSWER]


def test_an_answer_that_rests_on_a_memory_is_followed_by_its_owner_alone(
    database: Database, process: Process
) -> None:
    memory = memories.add(database, OWNER, "I sit in Leeds.")
    reference = make_memory_reference(memory.id)
    begun = begin(database)
    process.own_memories = make_own_memories(database, OWNER)

    def answer(turn: ChatTurn) -> Iterator[ChatEvent]:
        del turn
        yield CitationInfo(1, reference, "", "")
        yield TextPiece("In Leeds.")
        yield DONE

    process.run(begun, answer)
    followed = process.follow(begun.answer)
    assert followed[-1].name == "done"
    assert process.read(begun.answer).document_ids == (reference,)
    process.own_memories = own_no_memories
    with pytest.raises(WithheldError):
        process.follow(begun.answer)
    process.own_memories = make_own_memories(database, OWNER)
    memories.remove(database, OWNER, memory.id)
    with pytest.raises(WithheldError):
        process.follow(begun.answer)


def _answer_at_once(turn: ChatTurn) -> Iterator[ChatEvent]:
    del turn
    yield DONE


def _make_model(written: str) -> tuple[FastModel, list[str]]:
    """A model that writes this, or fails where it is empty; and what it is asked."""
    asked: list[str] = []

    def complete(prompt: Sequence[ChatMessage], deadline: Deadline) -> str:
        assert deadline.remaining() > 0
        asked.append(prompt[-1].text)
        if not written:
            raise CompletionError("The model is away.")
        return written

    model = FastModel(
        complete=complete,
        count_tokens=lambda text: len(text.split()),
        window=20_000,
        answering_window=300,
    )
    return model, asked


def test_the_model_names_a_conversation_by_its_first_question_alone(
    database: Database, process: Process
) -> None:
    process.fast_model, asked = _make_model("Parental leave")
    begun = begin(database, "How long is leave?")
    process.run(begun, _answer_at_once)
    assert process.follow(begun.answer)[-1].name == "done"
    conversation = begun.question.conversation_id
    _wait_for(lambda: conversations.get(database, OWNER, conversation).title == "Parental leave")
    assert [json.loads(one) for one in asked] == [{"question": "How long is leave?"}]
    follow_up = ask(database, conversation, begun.answer.id, "And for fathers?")
    process.run(follow_up, _answer_at_once)
    assert process.follow(follow_up.answer)[-1].name == "done"
    assert len(asked) == 1


@pytest.mark.parametrize("answer", [_fail, _answer_at_once])
def test_what_fails_leaves_the_first_words(
    database: Database, process: Process, answer: Callable[[ChatTurn], Iterator[ChatEvent]]
) -> None:
    process.fast_model, asked = _make_model("")
    begun = begin(database, "How long is leave?")
    process.run(begun, answer)
    assert process.follow(begun.answer)[-1].is_last
    if answer is _answer_at_once:
        _wait_for(lambda: asked)
    found = conversations.get(database, OWNER, begun.question.conversation_id)
    assert (found.title, found.title_by) == ("How long is leave?", "words")


@pytest.mark.parametrize("written", ["They spoke of leave.", ""])
def test_a_turn_is_told_the_summary_or_that_there_is_none(
    database: Database, process: Process, written: str
) -> None:
    process.fast_model, _ = _make_model(written)
    process.shelf.readable = {"wiki:a"}
    begun = begin(database, "one?")
    finish(database, begun.answer.id, "word " * 200, documents=("wiki:a",))
    begun = ask(database, begun.answer.conversation_id, begun.answer.id, "two?")
    turns_told: list[ChatTurn] = []

    def answer(turn: ChatTurn) -> Iterator[ChatEvent]:
        turns_told.append(turn)
        yield DONE

    process.run(begun, answer)
    events = process.follow(begun.answer)
    (turn,) = turns_told
    assert turn.summary == written
    assert (turn.history == ()) is bool(written)
    lost = [one.data for one in events if one.name == "lost"]
    assert lost == ([] if written else [{"step": "history", "reason": "The model is away."}])
    # Also after a reload.
    assert list(process.read(begun.answer).losses) == lost
    # What it is told rests on this, however it is told.
    assert process.read(begun.answer).document_ids == ("wiki:a",)
