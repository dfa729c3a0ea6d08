"""The tool `internal_search` of LangChain agents."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, BeforeValidator, Field, InstanceOf, StringConstraints
from pydantic.json_schema import Examples

from backend.chat import prompts
from backend.chat.agent.tool_calls import MAX_QUERIES, MAX_QUERY_CHARACTERS
from backend.chat.agent.tool_definitions import INTERNAL_SEARCH
from backend.chat.events import SEARCH_ERRORS
from backend.programs.bounded_work import run_bounded
from backend.programs.document_search import DocumentSearch
from backend.programs.langchain.failure_texts import (
    describe_invalid_arguments,
)
from backend.programs.langchain.tool_session import NumberedSource, ToolSession
from backend.programs.search_failures import describe_search_error
from backend.search.models import SearchResult
from backend.web_search.result_text import CITATION_RULES, announce_sources
from indexing.runtime.deadline import Deadline


def _to_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


class InternalSearchArguments(BaseModel):
    queries: Annotated[
        list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]],
        BeforeValidator(_to_list),
        # As a part of the type, examples reach the model: of a field, LangChain passes on its description alone.
        Examples([["parental leave", "How many weeks of parental leave are there?"]]),
        Field(min_length=1, description=prompts.QUERIES_DESCRIPTION),
    ]


class InternalSearchTool(BaseTool):
    """Search the documents that the asker may read.

    Its results are text for a model, and as the artifact of the message the numbered documents.
    """

    name: str = INTERNAL_SEARCH.name
    description: str = INTERNAL_SEARCH.description
    args_schema: type[BaseModel] = InternalSearchArguments
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool = True
    handle_validation_error: Callable[[object], str] = describe_invalid_arguments(
        '{"queries": ["..."]}'
    )

    search: InstanceOf[DocumentSearch] = Field(exclude=True, repr=False)
    start_deadline: Callable[[], Deadline] = Field(exclude=True, repr=False)
    """Called for each search; the same one for all searches of a turn that has one deadline."""
    session: InstanceOf[ToolSession] = Field(exclude=True, repr=False)

    def _run(self, queries: Sequence[str] | str) -> tuple[str, list[NumberedSource]]:
        return self._search(queries, self.start_deadline())

    async def _arun(self, queries: Sequence[str] | str) -> tuple[str, list[NumberedSource]]:
        return await run_bounded(
            lambda deadline: self._search(queries, deadline), self.start_deadline()
        )

    def _search(
        self, written: Sequence[str] | str, deadline: Deadline
    ) -> tuple[str, list[NumberedSource]]:
        texts = [written] if isinstance(written, str) else list(dict.fromkeys(written))
        queries = [text[:MAX_QUERY_CHARACTERS] for text in texts[:MAX_QUERIES]]
        try:
            result = self.search.search(queries, self.session.numbers, deadline)
        except SEARCH_ERRORS as error:
            raise ToolException(describe_search_error(error)) from error
        self.session.note_shown(result.sections)
        left_out = len(texts) > len(queries)
        note = prompts.queries_left_out(len(queries), len(texts)) if left_out else ""
        return _format_result(result, note.strip()), _list_sources(result)


def _format_result(result: SearchResult, note: str) -> str:
    found = result.for_model or prompts.NOTHING_FITS
    parts = [announce_sources(len(result.citations)), found, note, CITATION_RULES]
    return "\n\n".join(part for part in (parts if result.docs else [found, note]) if part)


def _list_sources(result: SearchResult) -> list[NumberedSource]:
    """Return each document once, by its number."""
    by_number = {
        doc.number: NumberedSource(number=doc.number, title=doc.title, link=doc.link)
        for doc in result.docs
    }
    return [by_number[number] for number in sorted(by_number)]
