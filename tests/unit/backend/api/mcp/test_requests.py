"""Requests to `/mcp` that a good client does not send, and those that end early."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client

from backend.access.api_tokens import TokenScope
from backend.api.request_guard import MOST_BYTES
from backend.programs.mcp import documents
from backend.programs.mcp.asker import DocumentAccess
from backend.schemas.mcp_tool import FoundDocuments, SearchArguments
from backend.worker.logs import JsonFormatter
from indexing.runtime.deadline import DeadlineExceededError
from tests.support.mcp_clients import (
    RAW_HEADERS,
    Mode,
    find_refusal,
    make_call,
    make_request,
    read_failure,
)
from tests.support.soak import scaled
from tests.unit.backend.api.conftest import SOURCE
from tests.unit.backend.api.mcp.conftest import BOB, QUESTION, Office

SOON = 30.0
MODERN: Mapping[str, str] = {"mcp-protocol-version": "2026-07-28"}
ERAS = pytest.mark.parametrize("era", [{}, MODERN], ids=["handshake", "without"])
SEARCH = make_call("search", query="parental leave")


@pytest.fixture
def http(office: Office) -> Iterator[httpx.Client]:
    headers = {**RAW_HEADERS, "authorization": f"Bearer {office.tokens[BOB]}"}
    with httpx.Client(base_url=office.url, headers=headers, timeout=60) as client:
        yield client


def test_who_proves_nothing_is_told_where_to_be_admitted(office: Office) -> None:
    for headers in ({}, {"authorization": "Bearer quarry_wrong"}, {"authorization": "Basic YTpi"}):
        for method in ("POST", "GET", "DELETE"):
            answer = httpx.request(method, f"{office.url}/mcp", headers={**RAW_HEADERS, **headers})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == (
                'Bearer realm="Quarry",'
                f' resource_metadata="{office.url}/.well-known/oauth-protected-resource/mcp",'
                ' scope="search ask"'
            )
    other = httpx.post(f"{office.url}/api/search", json={"query": "leave"})
    assert other.headers["www-authenticate"] == 'Bearer realm="Quarry"'


def test_a_token_without_the_scope_is_refused_with_its_name(
    office: Office, http: httpx.Client
) -> None:
    token = office.make_token(BOB, TokenScope.ASK)
    answer = http.post("/mcp", json=SEARCH, headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 403
    assert answer.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="search"'
    )


@ERAS
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example.com"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example.com"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "rebound.example.com"}, 421),
    ],
)
def test_a_page_of_elsewhere_is_refused(
    http: httpx.Client, era: Mapping[str, str], headers: dict[str, str], status: int
) -> None:
    answer = http.post("/mcp", json=SEARCH, headers={**era, **headers})
    assert answer.status_code == status
    assert "results" not in answer.text


def test_its_own_page_is_answered(office: Office, http: httpx.Client) -> None:
    answer = http.post("/mcp", json=SEARCH, headers={"origin": office.url})
    assert answer.status_code == 200
    assert f"{SOURCE}:leave.md" in answer.text


@ERAS
def test_only_messages_are_answered(http: httpx.Client, era: Mapping[str, str]) -> None:
    for method in ("GET", "DELETE", "PUT"):
        assert http.request(method, "/mcp", headers=era).status_code == 405


@ERAS
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"null", b"[]", b'{"jsonrpc":"2.0"}', b"[" * 50_000, b"1" * 5_000],
)
def test_what_is_no_message_is_refused(
    http: httpx.Client, era: Mapping[str, str], body: bytes
) -> None:
    answer = http.post("/mcp", content=body, headers=era)
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_several_messages_in_one_request_are_refused(http: httpx.Client) -> None:
    assert http.post("/mcp", json=[SEARCH, SEARCH]).status_code == 400


@ERAS
def test_a_body_that_is_too_long_is_refused_whether_or_not_it_says_so(
    http: httpx.Client, era: Mapping[str, str]
) -> None:
    body = json.dumps(make_call("search", query="a" * MOST_BYTES)).encode()
    assert http.post("/mcp", content=body, headers=era).status_code == 413
    pieces = (body[start : start + 50_000] for start in range(0, len(body), 50_000))
    assert http.post("/mcp", content=pieces, headers=era).status_code == 413


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("accept", "text/html", 406),
        ("accept", "application/json", 406),
        ("content-type", "text/plain", 400),
        ("mcp-protocol-version", "1999-01-01", 400),
        # Of a server with sessions; here every request stands for itself.
        ("mcp-session-id", "another", 200),
    ],
)
def test_headers_decide(http: httpx.Client, header: str, value: str, status: int) -> None:
    assert http.post("/mcp", json=SEARCH, headers={header: value}).status_code == status


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
METHODS = st.sampled_from(
    ["tools/call", "tools/list", "resources/list", "resources/read", "initialize", "ping",
     "server/discover", "completion/complete", "notifications/cancelled", "logging/setLevel"]
)  # fmt: skip
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["search", "fetch"]) | VALUES,
        "arguments": st.fixed_dictionaries(
            {}, optional={"query": VALUES, "id": VALUES, "limit": VALUES, "start": VALUES}
        )
        | VALUES,
        "uri": st.text(max_size=20).map("quarry://documents/{}".format) | VALUES,
        "cursor": VALUES,
        "_meta": VALUES,
    },
)


@pytest.mark.deep("engines")
@settings(max_examples=scaled(40, 1_000, "engines"), deadline=None)
@given(method=METHODS, params=PARAMS, modern=st.booleans(), identifier=VALUES)
def test_no_message_is_an_internal_error_or_shows_what_is_not_the_askers(
    office: Office, method: str, params: dict[str, Any], *, modern: bool, identifier: Any
) -> None:
    body = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    headers = {**RAW_HEADERS, "authorization": f"Bearer {office.tokens[BOB]}"}
    extra = {**MODERN, "mcp-method": method} if modern else {}
    sent = json.dumps(body).encode("utf-8", "surrogatepass")
    answer = httpx.post(f"{office.url}/mcp", content=sent, headers=headers | extra, timeout=60)
    assert answer.status_code < 500
    assert "internal error" not in answer.text.lower()
    assert "band five" not in answer.text


def test_an_error_of_the_program_says_nothing(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> FoundDocuments:
        raise KeyError("the text of a secret")

    monkeypatch.setattr(documents, "search_documents", fail)

    async def work(client: Client) -> tuple[int, str]:
        refused = await find_refusal(client.call_tool("search", {"query": "leave"}))
        return refused.code, refused.message

    code, message = office.use(BOB, mode, work)
    assert code == -32603
    assert message == "An internal error occurred. The log says more."
    assert "the text of a secret" in caplog.text


def test_time_that_is_over_is_told_to_the_model(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expire(*_: object) -> FoundDocuments:
        raise DeadlineExceededError

    monkeypatch.setattr(documents, "search_documents", expire)
    failed = read_failure(office.call(BOB, mode, "search", query="leave"))
    assert failed.startswith("The search did not end in time.")


class HeldSearch:
    """A search that goes on until its deadline ends."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()

    def __call__(self, access: DocumentAccess, asked: SearchArguments) -> FoundDocuments:
        del asked
        self.began.set()
        while access.deadline.remaining():
            time.sleep(0.01)
        self.ended.set()
        return FoundDocuments(results=())


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldSearch:
    search = HeldSearch()
    monkeypatch.setattr(documents, "search_documents", search)
    return search


@ERAS
def test_a_client_that_goes_away_ends_its_work(
    office: Office, held: HeldSearch, era: Mapping[str, str]
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = make_request(
        "tools/call",
        name="search",
        arguments={"query": "leave"},
        **({"_meta": meta} if era else {}),
    )
    routing = {**era, "mcp-method": "tools/call", "mcp-name": "search"} if era else {}
    headers = {**RAW_HEADERS, **routing, "authorization": f"Bearer {office.tokens[BOB]}"}

    async def leave() -> None:
        async with httpx.AsyncClient(timeout=60) as client:
            asked = asyncio.create_task(
                client.post(f"{office.url}/mcp", json=body, headers=headers)
            )
            assert await asyncio.to_thread(held.began.wait, SOON)
            assert not held.ended.is_set()
            asked.cancel()

    asyncio.run(leave())
    assert held.ended.wait(SOON)


def test_a_call_that_the_client_cancels_ends(office: Office, held: HeldSearch) -> None:
    async def cancel(client: Client) -> None:
        asked = asyncio.create_task(client.call_tool("search", {"query": "leave"}))
        assert await asyncio.to_thread(held.began.wait, SOON)
        asked.cancel()
        assert await asyncio.to_thread(held.ended.wait, SOON)

    office.use(BOB, "auto", cancel)


def test_who_has_too_much_under_way_is_told_so(
    office: Office, held: HeldSearch, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool of answers is full, which leaves searches alone."""
    pool = office.apps[0].state.app_state.pools.answers
    monkeypatch.setattr(pool, "_can_take", lambda _: False)
    monkeypatch.setattr(pool, "_make_room", lambda _: False)
    del held
    failed = read_failure(office.call(BOB, mode, "ask", question=QUESTION))
    assert failed.startswith("Quarry is busy: too many answers are under way. Try again in")


def test_the_log_names_the_route_and_not_the_query(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="quarry.requests"):
        http.post("/mcp", json=SEARCH).raise_for_status()
        http.get("/healthz")
    lines = [
        json.loads(JsonFormatter().format(record))
        for record in caplog.records
        if record.name == "quarry.requests"
    ]
    (line,) = [one for one in lines if one["route"] == "/mcp"]
    assert (line["status"], line["asker"]) == (200, "token")
    assert "parental" not in json.dumps(line)
