"""What a message of Chat mode is searched as: a plan for each side, and the pages that are read for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import regex

from backend.chat.intent.greetings import is_greeting
from backend.search.llm_protocol import ChatMessage
from backend.search.models import VariantQuery
from backend.search.retrieval import (
    LLM_NON_CUSTOM_QUERY_WEIGHT,
    LLM_SEMANTIC_QUERY_WEIGHT,
    normalize_query,
)
from indexing.index.protocols import VariantName
from indexing.text.normalization import is_visible

MAX_WEB_CHARACTERS = 400
"""Of a message as a web query; search engines refuse longer ones."""

_UNSENDABLE = regex.compile(r"[\0-\x1f\x7f-\x9f\ud800-\udfff\s]+")


class Side(StrEnum):
    """Where a message may be searched."""

    WEB = "web"
    KNOWLEDGE = "knowledge"


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """The asker has switched this side off."""


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Nothing of this side helps with the message: none of its results is used."""


@dataclass(frozen=True, slots=True)
class Queries:
    """What one side is asked.

    Attributes:
        message: The asker's own words, which are always searched.
        questions: What the intent step wrote, in the asker's language; none where it could not be read.
        rewrite: The message so that it stands by itself; of company knowledge alone.
        unclear: What is said of a follow-up where no rule tells what it means.
    """

    message: str
    questions: tuple[str, ...] = ()
    rewrite: str | None = None
    unclear: str = ""

    @property
    def web_message(self) -> str:
        """The message as search engines are asked it."""
        return self.message[:MAX_WEB_CHARACTERS].rstrip()


SidePlan: TypeAlias = SwitchedOff | NotNeeded | Queries


class LinkState(StrEnum):
    """What has become of a linked page before the message was sent."""

    UNREAD = "unread"
    PARSED = "parsed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LinkToRead:
    url: str
    """As it stands in the message."""
    title: str = ""
    state: LinkState = LinkState.UNREAD


@dataclass(frozen=True, slots=True)
class Searches:
    """Both sides are asked what their plans say, and the linked pages are read beside that."""

    web: SidePlan
    knowledge: SidePlan
    links: tuple[LinkToRead, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """Nothing is searched: the linked pages are read, with the message as the question."""

    question: str
    links: tuple[LinkToRead, ...]


SearchPlan: TypeAlias = Searches | Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRequest:
    message: str
    sides: frozenset[Side]
    """Those that are switched on."""
    history: tuple[ChatMessage, ...] = ()
    """The conversation before the message, oldest first; none where the message alone is the query."""
    context_links: tuple[LinkToRead, ...] = ()
    """Pages that belong to the message without standing in it."""


def to_query(text: str) -> str:
    """Put a text on one line that can be sent as a query; of a very long one keep the beginning and the end."""
    return normalize_query(_UNSENDABLE.sub(" ", text))


def needs_no_search(message: str) -> bool:
    """Return whether nothing can be read in a message, or nothing but a greeting."""
    return not is_visible(message) or is_greeting(message)


def ask_message_itself(message: str) -> SidePlan:
    """Plan a side by the message alone."""
    query = to_query(message)
    return NotNeeded() if needs_no_search(query) else Queries(query)


def find_unclear(plan: SearchPlan) -> str:
    """Return what is said of a message that no rule understands; empty where a plan has nothing to say."""
    if isinstance(plan, Summary):
        return ""
    sides = (plan.knowledge, plan.web)
    return next((one.unclear for one in sides if isinstance(one, Queries)), "")


def web_queries(queries: Queries) -> tuple[str, ...]:
    """Return what search engines are asked, the message first, each text once and where it stands first."""
    distinct: dict[str, str] = {}
    for text in (queries.web_message, *queries.questions):
        distinct.setdefault(text.casefold(), text)
    return tuple(distinct.values())


def plan_variants(queries: Queries) -> list[VariantQuery]:
    """Return what the index is asked besides the message itself; the rewrite stands in place of the rephrased message."""
    rewritten = [queries.rewrite] if queries.rewrite else []
    return [
        *_weigh("semantic", rewritten, LLM_SEMANTIC_QUERY_WEIGHT),
        *_weigh("llm", queries.questions, LLM_NON_CUSTOM_QUERY_WEIGHT),
    ]


def _weigh(name: VariantName, texts: Sequence[str], weight: float) -> list[VariantQuery]:
    return [VariantQuery(name, text, weight) for text in texts]
