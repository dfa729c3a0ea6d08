"""Passages of documents, shown where no language model answers: quoted, not written."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from connectors.document import Span

_UNTIL_MIDNIGHT = "Search works as before; answers come from passages until midnight UTC."
_WITHOUT_MODEL = "No language model wrote this answer."


class PassagesReason(StrEnum):
    """Why passages are shown, and not an answer."""

    NO_MODEL = "no_model"
    NOTHING_ANSWERS = "nothing_answers"
    """No model answers, and no passage seems to."""
    BUDGET_USED = "budget_used"
    """The asker has used the tokens of the day."""
    GROUP_BUDGET_USED = "group_budget_used"
    """The members of a group that the asker is in have, together."""
    SHARED_BUDGET_USED = "shared_budget_used"
    """All together have."""
    WEB_ALONE = "web_alone"
    """No model answers, and nothing but the web is asked."""
    MODEL_FAILED = "model_failed"
    """It wrote nothing."""
    MODEL_REFUSED = "model_refused"
    """It wrote nothing, and will not before an admin changes something."""
    MODEL_BROKE_OFF = "model_broke_off"
    """It wrote a part of an answer."""
    WITHOUT_MODEL = "without_model"
    """What others are shown in place of `PRIVATE_REASONS`."""


PRIVATE_REASONS = frozenset({PassagesReason.BUDGET_USED, PassagesReason.GROUP_BUDGET_USED})
"""What the asker has used, and which groups they are in, is theirs alone."""


REASON_TEXTS: Mapping[PassagesReason, str] = MappingProxyType(
    {
        PassagesReason.NO_MODEL: "No language model is set. These passages come closest.",
        PassagesReason.NOTHING_ANSWERS: "Nothing that you may read seems to answer this.",
        PassagesReason.BUDGET_USED: f"You have used today's budget of language model tokens. {_UNTIL_MIDNIGHT}",
        PassagesReason.GROUP_BUDGET_USED: f"Your group has used today's budget of language model tokens. {_UNTIL_MIDNIGHT}",
        PassagesReason.SHARED_BUDGET_USED: f"Today's budget of language model tokens is used up. {_UNTIL_MIDNIGHT}",
        PassagesReason.WEB_ALONE: "No language model is set. What was found on the web is listed.",
        PassagesReason.MODEL_FAILED: "The language model did not answer. Ask again later. These passages come closest.",
        PassagesReason.MODEL_REFUSED: "The language model could not be used; only an admin can change that. These passages come closest.",
        PassagesReason.MODEL_BROKE_OFF: "The language model did not finish this answer. These passages come closest.",
        PassagesReason.WITHOUT_MODEL: _WITHOUT_MODEL,
    }
)
"""What is said while an answer is given, for each reason."""

KEPT_REASON_TEXTS: Mapping[PassagesReason, str] = MappingProxyType(
    {
        **REASON_TEXTS,
        PassagesReason.NO_MODEL: "No language model was set. These passages come closest.",
        PassagesReason.MODEL_FAILED: "The language model did not answer. These passages come closest.",
        PassagesReason.WEB_ALONE: "No language model was set. What was found on the web is listed.",
        PassagesReason.BUDGET_USED: f"You had used the day's budget of language model tokens. {_WITHOUT_MODEL}",
        PassagesReason.GROUP_BUDGET_USED: f"Your group had used the day's budget of language model tokens. {_WITHOUT_MODEL}",
        PassagesReason.SHARED_BUDGET_USED: f"The day's budget of language model tokens was used up. {_WITHOUT_MODEL}",
    }
)
"""What is said of an answer that was kept: true on any later day."""

FOUND_ON_WEB = "What was found on the web is listed."
"""The text of an answer of which something else says why no language model wrote it."""

TEXTS_INSTEAD = frozenset({*REASON_TEXTS.values(), *KEPT_REASON_TEXTS.values(), FOUND_ON_WEB})
"""Where nothing else was written, one of these is the answer."""


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
