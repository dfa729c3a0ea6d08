"""The tool `web_search` of LangChain agents."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, Field, InstanceOf, StringConstraints, create_model
from pydantic.json_schema import Examples

from backend.chat.privacy.query_privacy import AllowedQuery, RefusedQuery
from backend.programs.bounded_work import run_bounded
from backend.programs.langchain.failure_texts import (
    describe_failed_attempts,
    describe_invalid_arguments,
    describe_refused_query,
    describe_removed_terms,
)
from backend.programs.langchain.tool_session import NumberedSource, ToolSession
from backend.programs.search_failures import describe_search_error
from backend.web_search.domains import DomainRules
from backend.web_search.result_text import MAX_RESULTS, NumberedResult, format_results
from backend.web_search.search import WebSearch
from backend.web_search.search_outcome import WebOutcome
from backend.web_search.tool_texts import WEB_SEARCH, WEB_SEARCH_TEXTS, Language, ToolTexts
from connectors.errors import QuarryError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

_Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _make_arguments(texts: ToolTexts) -> type[BaseModel]:
    # As a part of the type, examples reach the model: of a field, LangChain passes on its description alone.
    query = Annotated[_Query, Examples(list(texts.examples))]
    return create_model("WebSearchArguments", query=(query, Field(description=texts.parameter)))


ARGUMENTS: Mapping[Language, type[BaseModel]] = {
    language: _make_arguments(texts) for language, texts in WEB_SEARCH_TEXTS.items()
}
"""By the language in which the tool is described."""


class WebSearchTool(BaseTool):
    """Search the web by the providers that the admins have set.

    Its results are text for a model, and as the artifact of the message the numbered pages. After an internal search of
    the same session, exact terms of private documents are kept out of queries.
    """

    name: str = WEB_SEARCH
    description: str = WEB_SEARCH_TEXTS["en"].description
    args_schema: type[BaseModel] = ARGUMENTS["en"]
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool = True
    handle_validation_error: Callable[[object], str] = describe_invalid_arguments(
        '{"query": "..."}'
    )

    open_web: Callable[[], WebSearch] = Field(exclude=True, repr=False)
    domains: InstanceOf[DomainRules] = Field(exclude=True, repr=False)
    """Of whose pages the asker may be shown results, among those that the admins permit."""
    start_deadline: Callable[[], Deadline] = Field(exclude=True, repr=False)
    """Called for each search; the same one for all searches of a turn that has one deadline."""
    session: InstanceOf[ToolSession] = Field(exclude=True, repr=False)

    def _run(self, query: str) -> tuple[str, list[NumberedSource]]:
        return self._search(query, self.start_deadline())

    async def _arun(self, query: str) -> tuple[str, list[NumberedSource]]:
        return await run_bounded(
            lambda deadline: self._search(query, deadline), self.start_deadline()
        )

    def _search(self, query: str, deadline: Deadline) -> tuple[str, list[NumberedSource]]:
        try:
            web = self.open_web()
            allowed = self._check_query(query) if web.keeps_internal_names else AllowedQuery(query)
            outcome = web.search(allowed.text, MAX_RESULTS, None, None, deadline, self.domains)
        except (QuarryError, DeadlineExceededError) as error:
            raise ToolException(describe_search_error(error)) from error
        if not outcome.results and (failed := describe_failed_attempts(outcome.attempts)):
            raise ToolException(failed)
        return self._show(outcome, allowed.removed)

    def _check_query(self, query: str) -> AllowedQuery:
        """Return what of a query may be sent. Raises ToolException: nothing of it may be."""
        match self.session.check_query(query):
            case AllowedQuery() as allowed:
                return allowed
            case RefusedQuery(removed):
                raise ToolException(describe_refused_query(removed))

    def _show(
        self, outcome: WebOutcome, removed: Sequence[str]
    ) -> tuple[str, list[NumberedSource]]:
        numbered = [
            NumberedResult(self.session.number_page(one.url), one) for one in outcome.results
        ]
        notes = [describe_removed_terms(removed)] if removed else []
        sources = [
            NumberedSource(number=one.number, title=one.result.title, link=one.result.url)
            for one in numbered
        ]
        return "\n\n".join([format_results(numbered), *notes]), sources
