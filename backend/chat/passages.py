"""Passages of documents, shown where no language model answers: quoted, not written."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from connectors.document import Span

_UNTIL_MIDNIGHT = "Search works as before; answers come from passages until midnight UTC."


class PassagesReason(StrEnum):
    """Why passages are shown, and not an answer."""

    sentence: str
    """What is said to the asker."""

    def __new__(cls, value: str, sentence: str) -> Self:
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.sentence = sentence
        return reason

    NO_MODEL = "no_model", "No language model is set. These passages come closest."
    NOTHING_ANSWERS = "nothing_answers", "Nothing that you may read seems to answer this."
    """No model answers, and no passage seems to."""
    BUDGET_USED = (
        "budget_used",
        f"You have used today's budget of language model tokens. {_UNTIL_MIDNIGHT}",
    )
    """The asker has used the tokens of the day."""
    GROUP_BUDGET_USED = (
        "group_budget_used",
        f"Your group has used today's budget of language model tokens. {_UNTIL_MIDNIGHT}",
    )
    """The members of a group that the asker is in have, together."""
    SHARED_BUDGET_USED = (
        "shared_budget_used",
        f"Today's budget of language model tokens is used up. {_UNTIL_MIDNIGHT}",
    )
    """All together have."""
    WEB_ALONE = "web_alone", "No language model is set. What was found on the web is listed."
    """No model answers, and nothing but the web is asked."""
    MODEL_FAILED = (
        "model_failed",
        "The language model did not answer. These passages come closest.",
    )
    """It wrote nothing."""
    MODEL_BROKE_OFF = (
        "model_broke_off",
        "The language model did not finish this answer. These passages come closest.",
    )
    """It wrote a part of an answer."""


@dataclass(frozen=True, slots=True)
class TextRun:
    """A part of a passage as a person reads it."""

    text: str
    highlighted: bool = False
    """Whether it seems to answer the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedPassage:
    number: int
    """The document's citation number."""
    document_id: str
    title: str
    link: str
    """As `safe_link` escapes it."""
    place: str
    """Headings or page in the document; empty if it has neither."""
    quote: str
    """Verbatim, as in the document."""
    section: int
    span: Span
    """Of the quote, in the text of that section."""
    runs: tuple[TextRun, ...]
    """The quote without markup, on one line; a table row as `column: cell; column: cell`."""
    score: float
    """How well it fits the question; higher is better."""


@dataclass(frozen=True, slots=True)
class PassagesShown:
    """An event of a turn: the passages that come closest, best first."""

    reason: PassagesReason
    passages: tuple[QuotedPassage, ...]
