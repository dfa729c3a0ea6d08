"""The examples of docs/mcp.md do what it says."""

import json
import re

import pytest

from backend.programs.mcp.documents import PAGE, PART
from backend.programs.mcp.tool_definitions import ASK, FETCH, RESEARCH, SEARCH
from tests.support.home import CHECKOUT
from tests.support.scripted_model import ScriptedModel
from tests.unit.backend.api.mcp.conftest import BOB, Office

TEXT = (CHECKOUT / "docs" / "mcp.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
CONFIGURATIONS = re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
ADDRESS, TOKEN = "http://127.0.0.1:8321/mcp", "qry_…"


def test_the_example_searches_and_asks(
    office: Office, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model.requests == []
    code = EXAMPLE.replace(ADDRESS, f"{office.url}/mcp").replace(TOKEN, office.tokens[BOB])
    assert code.count(office.url) == code.count(office.tokens[BOB]) == 1
    exec(code, {"__name__": "example"})
    title, *_, answer = capsys.readouterr().out.splitlines()
    assert title.startswith("Parental leave http://127.0.0.1:")
    assert answer == "Parents have 26 weeks [1]."


def test_each_configuration_is_json_that_names_one_server() -> None:
    assert len(CONFIGURATIONS) == 4
    for text in CONFIGURATIONS:
        read = json.loads(text)
        (name,) = servers = read.get("mcpServers") or read["servers"]
        assert name == "quarry"
        assert servers[name].get("args", ["mcp"]) == ["mcp"]
        assert servers[name].get("url", "https://quarry.example.com/mcp").endswith("/mcp")


def test_the_page_names_every_tool_argument_and_limit() -> None:
    for tool in (SEARCH, FETCH, ASK, RESEARCH):
        (row,) = re.findall(rf"^\| `{tool.name}` \|.*$", TEXT, re.MULTILINE)
        assert tool.output_schema is not None
        named = {*tool.input_schema["properties"], *tool.output_schema["properties"]}
        assert {name for name in named if f"`{name}`" not in row} == set()
    assert f"{PART:,} characters" in TEXT
    assert PAGE == 100
    assert "lists of a hundred" in TEXT
