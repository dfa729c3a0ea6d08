"""What `ask` returns, and what it says while the answer comes about."""

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from pydantic import BaseModel

from backend.schemas.answer import (
    AnswerResponse,
    CitationResponse,
    PassageResponse,
    PassagesEvent,
    TextEvent,
)
from backend.schemas.mcp_tool import AnswerSource, SourcedAnswer
from backend.schemas.search import QueriesEvent, ResultsEvent, StepFailedEvent
from backend.schemas.system import ProblemDetails
from backend.schemas.web_lookup import PlannedEvent
from indexing.text.normalization import pluralize

FindUrl: TypeAlias = Callable[[str, str, str], str]
"""As `asker.DocumentAccess.find_url`."""
Place: TypeAlias = CitationResponse | PassageResponse
_LINKED = re.compile(r"\[\[(\d+)\]\]\([^\s)]*\)")


def describe_step(data: BaseModel) -> str | None:
    """Return what to tell of an event of an answer; None where there is nothing to tell."""
    match data:
        case PlannedEvent(knowledge=knowledge) if knowledge.use == "searched":
            return f"Looking up {_quote(knowledge.queries)}"
        case QueriesEvent(variants=variants):
            return f"Searching for {_quote(one.text for one in variants)}"
        case ResultsEvent(results=results):
            return f"Reading {pluralize(len(results), 'passage')}"
        case StepFailedEvent(step=step):
            return f"Going on without the step {step}, which failed"
        case TextEvent():
            return "Writing the answer"
        case PassagesEvent(sentence=sentence):
            return sentence
        case _:
            return None


def _quote(texts: Iterable[str]) -> str:
    return ", ".join(f"“{text}”" for text in dict.fromkeys(texts))


def describe_problem(problem: ProblemDetails) -> str:
    return f"{problem.detail} {problem.advice}" if problem.advice else problem.detail


def make_answer(answer: AnswerResponse, find_url: FindUrl) -> SourcedAnswer:
    by_number: dict[int, list[Place]] = {}
    places: tuple[Place, ...] = (*answer.citations, *answer.passages)
    for one in places:
        by_number.setdefault(one.number, []).append(one)
    return SourcedAnswer(
        answer=_LINKED.sub(r"[\1]", answer.answer),
        answered=answer.answered and answer.model is not None,
        sources=tuple(_make_source(by_number[number], find_url) for number in sorted(by_number)),
    )


def _make_source(places: list[Place], find_url: FindUrl) -> AnswerSource:
    first = places[0]
    kind = first.kind if isinstance(first, CitationResponse) else "document"
    return AnswerSource(
        number=first.number,
        id=first.document_id,
        title=first.title,
        url=find_url(first.document_id, first.link, kind),
        quotes=tuple(dict.fromkeys(one.quote for one in places if one.quote)),
    )
