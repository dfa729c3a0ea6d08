"""JSON of the tools that agents call over the Model Context Protocol."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.research.record.budget import MOST_MINUTES
from backend.schemas.base import Schema
from backend.schemas.research import ResearchCountsResponse
from indexing.text.normalization import is_visible

LONGEST_QUERY = 2_000
LONGEST_QUESTION = 8_000
LONGEST_ID = 10_000
LONGEST_NAME = 200
MOST_RESULTS = 50


def _check_text(text: str) -> str:
    if not is_visible(text):
        raise ValueError("write some text")
    return text


class SearchArguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    query: Annotated[str, AfterValidator(_check_text)] = Field(
        max_length=LONGEST_QUERY,
        description='What to look for, in words. "A phrase" must be held by each result, -word by none;'
        " source:, type:, person:, after: and before: narrow.",
    )
    limit: int = Field(default=10, ge=1, le=MOST_RESULTS, description="The most results")


class FetchArguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(max_length=LONGEST_ID, description="The id of a document, as search returns it")
    start: int = Field(
        default=0,
        ge=0,
        description="The character that the text begins with; next_start of the part before, where a document is long",
    )


class AskArguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Annotated[str, AfterValidator(_check_text)] = Field(
        max_length=LONGEST_QUESTION,
        description="One whole question in its own words: what was said before is not known",
    )


class ResearchArguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Annotated[str, AfterValidator(_check_text)] = Field(
        max_length=LONGEST_QUESTION,
        description="One whole question in its own words: nothing is asked back",
    )
    minutes: int = Field(
        default=10, ge=1, le=MOST_MINUTES, description="The research takes so long at most"
    )
    assistant: str | None = Field(
        default=None,
        max_length=LONGEST_NAME,
        description="Id or name of an assistant whose instructions are followed, and to whose documents the search is limited",
    )
    project: str | None = Field(
        default=None,
        max_length=LONGEST_NAME,
        description="Id or name of a project whose members see the report too; its instructions are followed, and its files are searched",
    )


class FoundDocument(Schema):
    id: str
    title: str
    url: str


class FoundDocuments(Schema):
    """The documents that match best, best first."""

    results: tuple[FoundDocument, ...]


class FetchedDocument(Schema):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str] = Field(
        description="source, media_type, updated_at where known; next_start where the text goes on"
    )


class AnswerSource(Schema):
    """A source that the answer cites by its number."""

    number: int
    id: str
    title: str
    url: str
    quotes: tuple[str, ...] = Field(description="Passages of it, word for word")


class SourcedAnswer(Schema):
    answer: str = Field(description="Markdown; [1] cites the source of that number")
    answered: bool = Field(
        description="False where no language model answered: the sources then are the passages that come closest"
    )
    sources: tuple[AnswerSource, ...]


class ReportSource(Schema):
    """A source that the report cites by its number."""

    number: int
    id: str
    title: str
    url: str


class SourcedReport(Schema):
    report: str = Field(
        description="Markdown; [1] cites the source of that number. Contradictions between sources are part of it"
    )
    sources: tuple[ReportSource, ...]
    counts: ResearchCountsResponse = Field(
        description="How many citations their sources were found to support, and how many not"
    )
    not_found: tuple[str, ...] = Field(description="Questions that nothing was found of")
    notes: tuple[str, ...] = Field(description="Sentences on how the report came about")
    url: str = Field(description="Where the HTTP API returns the research with all its tasks")
