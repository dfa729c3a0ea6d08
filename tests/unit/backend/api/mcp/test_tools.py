"""The tools and resources of `/mcp`, used by the official client in both forms of the protocol."""

import json

import pytest
from mcp import Client
from mcp_types import ListResourcesResult, ReadResourceResult, TextResourceContents, Tool

from backend.access.api_tokens import TokenScope
from backend.access.groups import GroupService
from backend.programs.mcp import documents
from tests.support.mcp_clients import (
    Balancer,
    Mode,
    Progress,
    connect,
    find_refusal,
    read_failure,
    read_text,
    use,
)
from tests.support.scripted_model import Refuse, ScriptedModel
from tests.unit.backend.api.conftest import FILES, SOURCE
from tests.unit.backend.api.mcp.conftest import (
    ANN,
    BOB,
    LEAVE,
    PAY,
    QUESTION,
    Office,
    cite_all,
)

ABSENT = f"{SOURCE}:finance/absent.md"
HIDDEN = "The document does not exist, or you may not read it."
BAND = "In which salary band is a senior engineer?"


async def list_tools(client: Client) -> list[Tool]:
    return (await client.list_tools()).tools


def test_each_tool_changes_nothing_and_says_what_it_takes_and_returns(
    office: Office, mode: Mode
) -> None:
    tools = {tool.name: tool for tool in office.use(BOB, mode, list_tools)}
    assert list(tools) == ["search", "fetch", "ask", "research"]
    for tool in tools.values():
        assert tool.annotations is not None
        # Research is kept, as a run of its own.
        assert tool.annotations.read_only_hint is (tool.name != "research")
        assert tool.annotations.destructive_hint is False
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is not None
    assert tools["search"].input_schema["required"] == ["query"]
    assert tools["fetch"].input_schema["required"] == ["id"]


def test_a_search_returns_documents_in_the_shape_of_connectors(office: Office, mode: Mode) -> None:
    found = office.call(BOB, mode, "search", query="parental leave")
    leave = {
        "id": LEAVE,
        "title": "Parental leave",
        "url": f"{office.url}/document/{SOURCE}:leave.md",
    }
    assert found.structured_content == {"results": [leave]}
    assert json.loads(read_text(found)) == found.structured_content
    assert not found.is_error


def test_a_search_returns_each_document_once_and_no_more_than_asked_for(
    office: Office, mode: Mode
) -> None:
    every = office.call(ANN, mode, "search", query="leave band journeys loading interlock")
    found = [one["id"] for one in every.structured_content["results"]]
    assert len(set(found)) == len(found) > 3
    few = office.call(ANN, mode, "search", query="leave band journeys loading interlock", limit=2)
    assert [one["id"] for one in few.structured_content["results"]] == found[:2]


def test_a_document_is_read_by_its_id(office: Office, mode: Mode) -> None:
    found = office.call(BOB, mode, "fetch", id=LEAVE)
    read = found.structured_content
    assert (read["id"], read["title"]) == (LEAVE, "Parental leave")
    assert read["text"] == "Parents have 26 weeks of paid leave."
    assert read["url"] == f"{office.url}/document/{SOURCE}:leave.md"
    assert (read["metadata"]["source"], read["metadata"]["media_type"]) == (SOURCE, "text/markdown")
    assert "next_start" not in read["metadata"]
    assert json.loads(read_text(found)) == read


def test_a_long_document_is_read_part_by_part(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PART", 7)

    async def read(client: Client) -> list[str]:
        parts, start = [], "0"
        while start:
            found = await client.call_tool("fetch", {"id": LEAVE, "start": int(start)})
            parts.append(found.structured_content["text"])
            start = found.structured_content["metadata"].get("next_start", "")
        return parts

    parts = office.use(BOB, mode, read)
    assert "".join(parts) == "Parents have 26 weeks of paid leave."
    assert {len(part) for part in parts[:-1]} == {7}


def test_who_may_not_read_a_document_is_told_what_who_names_none_is_told(
    office: Office, mode: Mode
) -> None:
    assert office.call(ANN, mode, "fetch", id=PAY).structured_content["title"] == "Salary bands"
    hidden = office.call(BOB, mode, "fetch", id=PAY)
    assert hidden == office.call(BOB, mode, "fetch", id=ABSENT)
    assert read_failure(hidden) == HIDDEN
    uris = [f"quarry://documents/{one.replace('/', '%2F')}" for one in (PAY, ABSENT)]

    async def read(client: Client) -> list[tuple[int, str, object]]:
        refusals = [await find_refusal(client.read_resource(uri)) for uri in uris]
        return [(one.code, one.message, one.data) for one in refusals]

    refused, absent = office.use(BOB, mode, read)
    assert refused == absent == (-32602, HIDDEN, None)


def test_a_search_finds_what_its_asker_may_read(office: Office, mode: Mode) -> None:
    ann = office.call(ANN, mode, "search", query="senior engineer salary band")
    assert PAY in read_text(ann)
    for query in ("senior engineer salary band", '"band five"', "author: Mole"):
        bob = office.call(BOB, mode, "search", query=query)
        assert PAY not in read_text(bob)


def test_an_answer_names_its_sources_and_reports_its_steps(
    office: Office, model: ScriptedModel, mode: Mode
) -> None:
    progress = Progress()

    async def ask(client: Client) -> object:
        found = await client.call_tool(
            "ask", {"question": QUESTION}, progress_callback=progress.note
        )
        assert json.loads(read_text(found)) == found.structured_content
        return found.structured_content

    assert office.use(BOB, mode, ask) == {
        "answer": "Parents have 26 weeks [1].",
        "answered": True,
        "sources": [
            {
                "number": 1,
                "id": LEAVE,
                "title": "Parental leave",
                "url": f"{office.url}/document/{SOURCE}:leave.md",
                "quotes": ["Parents have 26 weeks of paid leave."],
            }
        ],
    }
    assert progress.steps == sorted(set(progress.steps))
    assert progress.messages[-1] == "Writing the answer"
    assert any(one.startswith("Searching for") and QUESTION in one for one in progress.messages)
    assert model.requests


def test_an_answer_draws_on_what_its_asker_may_read(
    office: Office, model: ScriptedModel, mode: Mode
) -> None:
    model.play(cite_all)
    ann = office.call(ANN, mode, "ask", question=BAND)
    assert PAY in [one["id"] for one in ann.structured_content["sources"]]
    model.requests.clear()
    bob = office.call(BOB, mode, "ask", question=BAND)
    assert PAY not in read_text(bob)
    assert all("band five" not in request.text for request in model.requests)


def test_where_the_model_fails_the_passages_are_returned(
    office: Office, model: ScriptedModel, mode: Mode
) -> None:
    model.play(lambda _: Refuse(500))
    found = office.call(BOB, mode, "ask", question=QUESTION)
    assert found.structured_content["answered"] is False
    (source,) = found.structured_content["sources"]
    assert (source["id"], source["quotes"]) == (LEAVE, ["Parents have 26 weeks of paid leave."])


def test_a_token_that_may_not_ask_has_no_such_tool(office: Office, mode: Mode) -> None:
    token = office.make_token(BOB, TokenScope.SEARCH)

    async def work(client: Client) -> tuple[list[str], str]:
        names = [tool.name for tool in await list_tools(client)]
        refused = await find_refusal(client.call_tool("ask", {"question": QUESTION}))
        return names, refused.message

    names, refused = use(office.url, token, mode, work)
    assert names == ["search", "fetch"]
    assert refused == "There is no such tool."


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("search", {}, "query: Field required"),
        ("search", {"query": " \u200b"}, "query: Value error, write some text"),
        ("search", {"query": "a" * 2_001}, "at most 2000 characters"),
        ("search", {"query": "leave", "limit": 0}, "limit"),
        ("search", {"query": "leave", "readers": ["group:finance"]}, "readers: Extra inputs"),
        ("fetch", {"id": LEAVE, "start": -1}, "start"),
        ("ask", {"question": ["leave"]}, "question"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    office: Office, mode: Mode, name: str, arguments: dict[str, object], fault: str
) -> None:
    assert fault in read_failure(office.call(BOB, mode, name, **arguments))


def test_an_unknown_tool_and_a_foreign_resource_are_refused(office: Office, mode: Mode) -> None:
    async def work(client: Client) -> list[int]:
        return [
            (await find_refusal(client.call_tool("delete", {}))).code,
            (await find_refusal(client.read_resource("file:///etc/passwd"))).code,
            (await find_refusal(client.get_prompt("leave"))).code,
        ]

    assert office.use(BOB, mode, work) == [-32602, -32602, -32601]


def test_documents_are_resources(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PAGE", 2)
    monkeypatch.setattr("backend.programs.mcp.resources.PAGE", 2)

    async def read_all(client: Client) -> dict[str, str]:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "quarry://documents/{id}"
        page: ListResourcesResult = await client.list_resources()
        listed = list(page.resources)
        while page.next_cursor is not None:
            assert len(page.resources) == 2
            page = await client.list_resources(cursor=page.next_cursor)
            listed += page.resources
        found = {}
        for one in listed:
            read: ReadResourceResult = await client.read_resource(one.uri)
            (contents,) = read.contents
            assert isinstance(contents, TextResourceContents)
            assert (contents.uri, contents.mime_type) == (one.uri, one.mime_type)
            found[one.name] = contents.text
        return found

    every = {f"{SOURCE}:{name}" for name in FILES if name != "access.yaml"}
    ann, bob = office.use(ANN, mode, read_all), office.use(BOB, mode, read_all)
    assert set(ann) == every
    assert set(bob) == every - {PAY}
    assert ann[LEAVE] == bob[LEAVE] == "Parents have 26 weeks of paid leave."
    assert ann[PAY] == "A senior engineer is in band five."


def test_a_long_resource_says_how_to_go_on(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.programs.mcp.resources.PART", 7)
    uri = f"quarry://documents/{LEAVE}"
    read = office.use(BOB, mode, lambda client: client.read_resource(uri))
    (contents,) = read.contents
    assert isinstance(contents, TextResourceContents)
    assert contents.text == (
        "Parents\n\n[The document goes on. To read it, call fetch with the start 7.]"
    )


def test_what_is_withdrawn_counts_for_the_next_call_of_a_connection(
    office: Office, mode: Mode
) -> None:
    groups = GroupService(office.container.database)

    async def work(client: Client) -> list[bool]:
        failed = [(await client.call_tool("fetch", {"id": PAY})).is_error]
        groups.remove_member("finance", ANN)
        failed.append((await client.call_tool("fetch", {"id": PAY})).is_error)
        found = await client.call_tool("search", {"query": "senior engineer salary band"})
        failed.append(PAY in read_text(found))
        groups.add_member("finance", ANN)
        failed.append((await client.call_tool("fetch", {"id": PAY})).is_error)
        return failed

    assert office.use(ANN, mode, work) == [False, True, False, False]


@pytest.mark.anyio
async def test_two_servers_behind_one_address_serve_a_connection(
    office: Office, model: ScriptedModel, mode: Mode
) -> None:
    del model
    balancer = Balancer(office.urls)
    async with connect(office.url, office.tokens[BOB], mode, balancer) as client:
        for _ in range(3):
            found = await client.call_tool("search", {"query": "parental leave"})
            assert LEAVE in read_text(found)
            answer = await client.call_tool("ask", {"question": QUESTION})
            assert answer.structured_content["answered"] is True
            read = await client.call_tool("fetch", {"id": PAY})
            assert read_failure(read) == HIDDEN
    assert len(set(balancer.sent)) == 2
