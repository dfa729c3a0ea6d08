"""Conversations in a database, their answers written by nobody, or by whom a test says."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.conversations.turn_events import EncodedEvent, encode_portion
from backend.store.chat import new_messages, turns
from backend.store.chat.messages import Message
from backend.store.chat.new_messages import Begun, NewQuestion, Writer
from backend.store.chat.turns import Ending, Portion, Progress, TurnState
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.sync.runs import Process

OWNER = ConversationOwner(None)
ELSEWHERE = Process("elsewhere", 7, "1")
"""A process of another machine: nobody here can tell that it has died before its lease ends."""
START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def own_no_memories(memory_ids: Collection[str]) -> frozenset[str]:
    """Say that none of these memories is the asker's."""
    del memory_ids
    return frozenset()


def writer(minute: int = 0, process: Process = ELSEWHERE) -> Writer:
    return Writer(process, START + timedelta(minutes=minute))


def begin(
    database: Database,
    text: str = "How long is leave?",
    owner: ConversationOwner = OWNER,
    minute: int = 0,
) -> Begun:
    question = NewQuestion(text=text, filters={})
    return new_messages.begin_conversation(database, owner, text, question, writer(minute))


def ask(database: Database, conversation: str, parent: int | None, text: str) -> Begun:
    question = NewQuestion(text=text, filters={})
    return new_messages.ask(database, OWNER, conversation, parent, question, writer())


def text_portion(message: int, first: int, *texts: str, documents: tuple[str, ...] = ()) -> Portion:
    events = [EncodedEvent("text", f'{{"text":"{text}"}}') for text in texts]
    last = first + len(events) - 1
    return Portion(message, first, last, encode_portion(first, events), documents or None)


def store(
    database: Database, message: int, portion: Portion | None, ending: Ending | None, now: datetime
) -> TurnState:
    """Store what one turn has written."""
    return turns.store(database, [Progress(message, portion, ending)], now)[message]


def finish(
    database: Database,
    message: int,
    text: str = "26 weeks.",
    documents: tuple[str, ...] = (),
    answer: Mapping[str, Any] | None = None,
    losses: tuple[Mapping[str, Any], ...] = (),
) -> None:
    """End a turn of which nothing is stored yet with this answer."""
    ending = Ending(message_id=message, status="finished", text=text, answer=answer, losses=losses)
    portion = text_portion(message, 1, text, documents=documents)
    state = store(database, message, portion, ending, datetime.now(UTC))
    assert state is TurnState.RUNNING


def make_message(role: Any, text: str, answer: dict[str, Any] | None = None) -> Message:
    """One that is in no database."""
    is_answer = role == "assistant"
    return Message(
        id=1,
        conversation_id="c",
        parent_id=None,
        role=role,
        text=text,
        filters=None,
        created_at=START,
        status="finished" if is_answer else None,
        answer=answer,
        problem=None,
        document_ids=(),
        losses=(),
        search_scope=None,
    )


def make_answer(text: str, *document_ids: str, **fields: Any) -> dict[str, Any]:
    """An answer as it is stored, which cites these documents by the numbers from 1 on."""
    cited = [
        {
            "number": number,
            "document_id": document_id,
            "title": f"Title of {document_id}",
            "link": f"https://wiki.example.com/{number}",
        }
        for number, document_id in enumerate(document_ids, start=1)
    ]
    quote = {"section": 0, "span": [0, 4], "score": 0.9, "verdict": "supported"}
    citations = [{**one, **quote, "quote": f"Quote of {one['document_id']}"} for one in cited]
    documents = [{**one, "cited": True, "sections": []} for one in cited]
    return {
        "answer": text,
        "model": "scripted",
        "citations": citations,
        "documents": documents,
        "seconds": 1.5,
        **fields,
    }
