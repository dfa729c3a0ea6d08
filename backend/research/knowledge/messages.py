"""Knowledge as a language model reads it: each item a question and its answer, before the conversation."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from backend.research.knowledge.builders import measure_relevance
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType
from backend.search.llm_protocol import ChatMessage
from backend.web_search.results import Freshness
from indexing.embedding.token_counting import CountTokens

_DATED = {KnowledgeType.URL, KnowledgeType.SIDE_INFO}
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_TAG = re.compile(r"<(/?\s*(?:answer-datetime|url)\s*/?)>", re.IGNORECASE)
MESSAGE_TOKENS = 4
"""That a message costs beside its text."""


def compose_messages(
    knowledge: Iterable[KnowledgeItem],
    conversation: Sequence[ChatMessage],
    requests: Sequence[ChatMessage] = (),
) -> list[ChatMessage]:
    """Return what is known, then the conversation, then what those who review an answer asked for."""
    known = (message for item in knowledge for message in write_item(item))
    return [*known, *conversation, *requests]


def write_item(item: KnowledgeItem) -> tuple[ChatMessage, ChatMessage]:
    """Write the question, and the answer below its date and the first of its addresses where it has them."""
    answer = "\n\n".join((*_write_facts(item), _disarm(item.answer.strip())))
    question = _disarm(item.question.strip())
    return ChatMessage("user", _fold(question)), ChatMessage("assistant", _fold(answer))


def _write_facts(item: KnowledgeItem) -> Iterator[str]:
    if item.type in _DATED and item.updated is not None:
        guessed = " (guessed)" if item.updated_is_guess else ""
        yield f"<answer-datetime>\n{_write_time(item.updated)}{guessed}\n</answer-datetime>"
    if item.type is KnowledgeType.URL and item.references:
        yield f"<url>\n{_disarm(item.references[0].url)}\n</url>"


def _write_time(updated: datetime | Freshness) -> str:
    match updated:
        case Freshness():
            return f"past {updated.value}"
        case datetime():
            return updated.isoformat(timespec="minutes")


def _disarm(text: str) -> str:
    """Keep what was found from passing for the date or the address of an item."""
    return _TAG.sub(r"‹\1›", text)


def _fold(text: str) -> str:
    """Make each run of blank lines one."""
    return _BLANK_LINES.sub("\n\n", text)


def fit_knowledge(
    knowledge: Sequence[KnowledgeItem], question: str, room: int, count_tokens: CountTokens
) -> list[KnowledgeItem]:
    """Keep the items that together come to at most `room` tokens, in their order; the least relevant give way.

    One that does not fit is passed over.
    """
    kept = set[int]()
    ranked = sorted(range(len(knowledge)), key=lambda at: -_rank(knowledge[at], question))
    for at in ranked:
        cost = sum(
            count_tokens(message.text) + MESSAGE_TOKENS for message in write_item(knowledge[at])
        )
        if cost <= room:
            room -= cost
            kept.add(at)
    return [item for at, item in enumerate(knowledge) if at in kept]


def _rank(item: KnowledgeItem, question: str) -> float:
    """Rate how close question and answer of a finding are to a question.

    What was looked up for one question has it in all its items, so that their answers decide.
    """
    return measure_relevance(question, item.question) + measure_relevance(question, item.answer)
