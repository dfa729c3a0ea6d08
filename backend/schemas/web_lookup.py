"""JSON of what an answer looks up: the plan of the intent step, searches of the web and pages of it."""

from collections.abc import Sequence
from typing import Literal, Self

from backend.chat.intent.search_plan import (
    NotNeeded,
    Queries,
    Searches,
    SearchPlan,
    SidePlan,
    Summary,
    SwitchedOff,
)
from backend.schemas.base import Schema, with_example
from backend.web_search.page_descriptions import describe_failure
from backend.web_search.results import PageOutcome, WebPage, WebResult
from backend.web_search.web_session import WebFinding


class SidePlanResponse(Schema):
    """What one side is asked."""

    use: Literal["off", "not_needed", "searched"]
    queries: tuple[str, ...] = ()
    """The message first, then what the intent step wrote."""

    @classmethod
    def from_plan(cls, plan: SidePlan) -> Self:
        match plan:
            case SwitchedOff():
                return cls(use="off")
            case NotNeeded():
                return cls(use="not_needed")
            case Queries(message=message, questions=questions, rewrite=rewrite):
                texts = (message, *((rewrite,) if rewrite else ()), *questions)
                return cls(use="searched", queries=tuple(dict.fromkeys(texts)))


class PlannedEvent(Schema):
    """The event `planned`: where the message is looked up, in Chat mode."""

    model_config = with_example(
        knowledge={"use": "searched", "queries": ["How long is our parental leave?"]},
        web={"use": "searched", "queries": ["How long is our parental leave?"]},
        pages=["https://example.com/law"],
    )

    knowledge: SidePlanResponse
    web: SidePlanResponse
    pages: tuple[str, ...]
    """Addresses in the message that are read."""

    @classmethod
    def from_plan(cls, plan: SearchPlan) -> Self:
        pages = tuple(link.url for link in plan.links)
        match plan:
            case Summary():
                none = SidePlanResponse(use="not_needed")
                return cls(knowledge=none, web=none, pages=pages)
            case Searches(web=web, knowledge=knowledge):
                return cls(
                    knowledge=SidePlanResponse.from_plan(knowledge),
                    web=SidePlanResponse.from_plan(web),
                    pages=pages,
                )


class FoundPageResponse(Schema):
    title: str
    url: str
    summary: str

    @classmethod
    def from_result(cls, result: WebResult) -> Self:
        return cls(title=result.title, url=result.url, summary=result.summary)


class WebSearchedEvent(Schema):
    """The event `web_searched`: a search of the web, with what was sent and to whom."""

    model_config = with_example(
        query="parental leave law Denmark",
        receivers=["Tavily (api.tavily.com)", "Brave Search (api.search.brave.com)"],
        answered_by="Brave Search (api.search.brave.com)",
        withheld=[],
        results=[
            {
                "title": "Parental leave in Denmark",
                "url": "https://example.com/law",
                "summary": "Each parent has 24 weeks.",
            }
        ],
        problem="",
    )

    query: str
    receivers: tuple[str, ...]
    """Empty where the same was searched before in this conversation: nothing was sent."""
    answered_by: str
    """The receiver whose results these are: the last one, where those before it failed or found nothing; empty where none answered now."""
    withheld: tuple[str, ...]
    """What was taken out of the query before, since only documents say it that not everybody may read."""
    results: tuple[FoundPageResponse, ...]
    problem: str
    """Why no provider answered; empty where one did."""

    @classmethod
    def from_finding(cls, finding: WebFinding, withheld: Sequence[str]) -> Self:
        return cls(
            query=finding.query,
            receivers=finding.receivers,
            answered_by=finding.answered_by,
            withheld=tuple(withheld),
            results=tuple(map(FoundPageResponse.from_result, finding.results)),
            problem=finding.problem,
        )


class ReadPageResponse(Schema):
    url: str
    title: str
    problem: str
    """Why it could not be read; empty where it was."""

    @classmethod
    def from_outcome(cls, outcome: PageOutcome) -> Self:
        if isinstance(outcome, WebPage):
            return cls(url=outcome.url, title=outcome.title, problem="")
        return cls(url=outcome.url, title="", problem=describe_failure(outcome))


class PagesReadEvent(Schema):
    """The event `pages_read`: pages of the web that were read, or could not be."""

    model_config = with_example(
        pages=[{"url": "https://example.com/law", "title": "The law", "problem": ""}]
    )

    pages: tuple[ReadPageResponse, ...]

    @classmethod
    def from_pages(cls, pages: Sequence[PageOutcome]) -> Self:
        return cls(pages=tuple(map(ReadPageResponse.from_outcome, pages)))
