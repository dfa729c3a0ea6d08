"""The examples of docs/langchain.md do what it says."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from tests.support.home import CHECKOUT
from tests.unit.backend.programs.langchain.conftest import Company

PAGE = (CHECKOUT / "docs" / "langchain.md").read_text(encoding="utf-8")
AGENT, RETRIEVER = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CALLS = [
    {"name": "internal_search", "args": {"queries": ["days of paid leave"]}, "id": "1"},
    {"name": "web_search", "args": {"query": "paid leave law"}, "id": "2"},
]


class Model(GenericFakeChatModel):
    """Calls the tools that it is given, and cites what they were first to find."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[LanguageModelInput, AIMessage]:
        assert {tool.name for tool in tools if isinstance(tool, BaseTool)} == {
            one["name"] for one in CALLS
        }
        return self


def write_script() -> Iterator[AIMessage | str]:
    yield AIMessage(content="", tool_calls=CALLS)
    yield "Twenty [1]."


@pytest.fixture(autouse=True)
def _environment(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARRY_HOME", str(company.settings.home))
    monkeypatch.setenv("QUARRY_EMBEDDING_URL", company.embedding.url)


def test_the_agent_answers_and_lists_what_it_cites(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(AGENT, {"model": Model(messages=write_script())})
    answer, source = capsys.readouterr().out.splitlines()
    assert answer == "Twenty [1]."
    assert source.startswith("[1] Leave file://")
    assert company.web_queries == ["paid leave law"]


def test_the_retriever_prints_passages(capsys: pytest.CaptureFixture[str]) -> None:
    exec(RETRIEVER, {})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("Leave 0.")
    assert line.endswith("Leave is asked for in the portal.")
