"""The standard tests of LangChain, on a home of its own for the module."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from backend.programs.langchain import (
    InternalSearchTool,
    OpenedHome,
    QuarryRetriever,
    ToolSession,
    WebSearchTool,
    open_home,
)
from tests.unit.backend.programs.langchain.conftest import ANN, open_company


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedHome]:
    with (
        open_company(tmp_path_factory.mktemp("company")) as company,
        open_home(ANN, settings=company.settings) as opened,
    ):
        yield opened


class OfHome:
    """Makes the constructors' arguments from the home."""

    home: OpenedHome

    @pytest.fixture(autouse=True)
    def _home(self, home: OpenedHome) -> None:
        self.home = home


def arguments_of(made: BaseTool | BaseRetriever, *names: str) -> dict[str, Any]:
    return {name: getattr(made, name) for name in names}


class OfInternalSearch(OfHome):
    @property
    def tool_constructor(self) -> type[InternalSearchTool]:
        return InternalSearchTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        internal, _ = self.home.make_tools(ToolSession())
        return arguments_of(internal, "search", "start_deadline", "session")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"queries": ["paid leave", "How many days of leave are there?"]}


class OfWebSearch(OfHome):
    @property
    def tool_constructor(self) -> type[WebSearchTool]:
        return WebSearchTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        _, web = self.home.make_tools(ToolSession())
        return arguments_of(web, "open_web", "domains", "start_deadline", "session")

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "parental leave 2026"}


class TestInternalSearchUnit(OfInternalSearch, ToolsUnitTests):
    pass


@pytest.mark.anyio
class TestInternalSearchIntegration(OfInternalSearch, ToolsIntegrationTests):
    pass


class TestWebSearchUnit(OfWebSearch, ToolsUnitTests):
    pass


@pytest.mark.anyio
class TestWebSearchIntegration(OfWebSearch, ToolsIntegrationTests):
    pass


@pytest.mark.anyio
class TestRetriever(OfHome, RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[QuarryRetriever]:
        return QuarryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return arguments_of(self.home.make_retriever(), "search", "start_deadline")

    @property
    def retriever_query_example(self) -> str:
        return "leave"
