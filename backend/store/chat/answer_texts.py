"""What answers say, as it is searched: of each that has ended and says something, without the addresses of its links.

What is found here may have been withdrawn from its asker since: `backend.conversations.conversation_search` asks the gate.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, insert, literal, not_, or_, select

from backend.store.chat.conversations import (
    NEWEST_FIRST,
    ListPosition,
    ListState,
    is_after,
    is_in,
    of_owner,
)
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import answer_texts, conversations, messages
from indexing.text.markdown_links import strip_link_targets
from indexing.text.normalization import fold

MOST_SEARCHED = 2_000
"""Conversations of an owner, active or archived ones, whose answers are searched: those that were used last.

A bound of matches instead would tell how many answers match that the asker may not read any more, by what is not found behind them.
"""


@dataclass(frozen=True, slots=True)
class ListSpan:
    """The conversations of a list behind one position, down to another; None for its beginning and its end."""

    before: ListPosition | None
    until: ListPosition | None


@dataclass(frozen=True, slots=True)
class MatchingAnswer:
    words: frozenset[str]
    document_ids: tuple[str, ...]
    """What it rests on."""


@dataclass(frozen=True, slots=True)
class MatchingConversation:
    id: str
    asked: frozenset[str]
    """The words that stand in its title or in a question."""
    answers: tuple[MatchingAnswer, ...]


def insert_text(connection: Connection, message_id: int, text: str) -> None:
    """Let an answer be found by what it says."""
    if not text:
        return
    folded = literal(fold(strip_link_targets(text)))
    answer = select(messages.c.id, messages.c.conversation_id, folded)
    answer = answer.where(messages.c.id == message_id)
    columns = ("message_id", "conversation_id", "folded_text")
    connection.execute(insert(answer_texts).from_select(columns, answer))


def list_candidates(
    database: Database,
    owner: ConversationOwner,
    state: ListState,
    words: Sequence[str],
    span: ListSpan,
) -> list[str]:
    """Return those in which each word stands in the title, a question or an answer, the last used one first.

    Of the `MOST_SEARCHED` conversations alone that were used last.
    """
    used_last = select(conversations.c.id).where(of_owner(owner), is_in(state))
    used_last = used_last.order_by(*NEWEST_FIRST).limit(MOST_SEARCHED)
    query = select(conversations.c.id).where(conversations.c.id.in_(used_last))
    if span.before is not None:
        query = query.where(is_after(span.before))
    if span.until is not None:
        query = query.where(not_(is_after(span.until)))
    query = query.where(*map(_holds, words)).order_by(*NEWEST_FIRST)
    with database.reading() as connection:
        return list(connection.scalars(query))


def _holds(word: str) -> ColumnElement[bool]:
    said = select(literal(1)).where(answer_texts.c.conversation_id == conversations.c.id)
    return or_(_asks(word), _finds(said.where(_says(word))))


def _asks(word: str) -> ColumnElement[bool]:
    """Return whether a word stands in the title or in a question of a conversation."""
    folded = fold(word)
    asked = select(literal(1)).where(
        messages.c.conversation_id == conversations.c.id,
        messages.c.folded_text.contains(folded, autoescape=True),
    )
    return or_(conversations.c.folded_title.contains(folded, autoescape=True), _finds(asked))


def _says(word: str) -> ColumnElement[bool]:
    return answer_texts.c.folded_text.contains(fold(word), autoescape=True)


def _finds(query: Select[Any]) -> ColumnElement[bool]:
    """Return whether a query finds something. For an EXISTS, PostgreSQL may read the messages of everybody."""
    return query.correlate(conversations).limit(1).scalar_subquery().is_not(None)


def list_matches(
    database: Database, ids: Collection[str], words: Sequence[str]
) -> list[MatchingConversation]:
    """Return where these words stand in these conversations, in no order."""
    asked = select(conversations.c.id, *map(_asks, words)).where(conversations.c.id.in_(ids))
    said = select(answer_texts.c.conversation_id, messages.c.document_ids, *map(_says, words))
    said = said.join(messages, messages.c.id == answer_texts.c.message_id)
    said = said.where(answer_texts.c.conversation_id.in_(ids), or_(*map(_says, words)))
    answers = defaultdict[str, list[MatchingAnswer]](list)
    with database.reading() as connection:
        for conversation, documents, *stands in connection.execute(said):
            matching = frozenset(compress(words, stands))
            answers[conversation].append(MatchingAnswer(matching, tuple(documents)))
        return [
            MatchingConversation(one, frozenset(compress(words, stands)), tuple(answers[one]))
            for one, *stands in connection.execute(asked)
        ]
