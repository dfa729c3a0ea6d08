"""The OAuth client of MCP's official SDK connects itself: discovery, registration, consent, tokens, refresh."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from fastapi.testclient import TestClient
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.app import Api
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store import oauth_grants, people
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.oauth import AT_A_PORT, allow
from tests.unit.backend.api.conftest import ADDRESS, connected, make_container, write_files

ANN = "ann@example.com"


class Storage(TokenStorage):
    """What the client keeps."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    folder: Path = tmp_path_factory.mktemp("files")
    write_files(folder)
    made = make_container(tmp_path_factory.mktemp("home"))
    connected(made, folder)
    add_person(made.database, ANN, Role.ADMIN)
    return made


@pytest.fixture(scope="module")
def app(container: Container) -> Iterator[Api]:
    owner = Owner(container.machine_secret, Readers.of())
    made = make_app(container, owner, Listening(address="127.0.0.1"))
    with TestClient(made, base_url=ADDRESS):
        assert made.state.app_state.warmup.ready.wait(60)
        yield made


@pytest.fixture
def browser(app: Api, container: Container) -> TestClient:
    person = people.get_by_email(container.database, ANN)
    session = begin_session(container.database, person, Visitor())
    proof = {"x-csrf-token": make_csrf_token(session)}
    made = TestClient(app, base_url=ADDRESS, follow_redirects=False, headers=proof)
    made.cookies.set(AccountCookies.of_machine(container.machine_secret).session, session)
    return made


def _make_provider(url: str, storage: Storage, browser: TestClient) -> OAuthClientProvider:
    """Return the client; the person at the browser allows what it asks for."""
    asked: list[str] = []

    async def open_browser(address: str) -> None:
        asked.append(address.removeprefix(ADDRESS))

    async def wait_for_answer() -> AuthorizationCodeResult:
        told = await anyio.to_thread.run_sync(lambda: allow(browser, asked.pop()))
        return AuthorizationCodeResult(code=told["code"], state=told["state"], iss=told["iss"])

    metadata = OAuthClientMetadata(client_name="Official client", redirect_uris=[AnyUrl(AT_A_PORT)])
    return OAuthClientProvider(url, metadata, storage, open_browser, wait_for_answer)


def _request(app: Api, provider: OAuthClientProvider, method: str, url: str) -> httpx2.Response:
    async def send() -> httpx2.Response:
        transport: Any = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(auth=provider, transport=transport) as client:
            return await client.request(method, url)

    return anyio.run(send)


def test_it_connects_to_the_api_and_reads_what_its_person_reads(
    app: Api, browser: TestClient, container: Container
) -> None:
    storage, url = Storage(), f"{ADDRESS}/api/documents"
    answer = _request(app, _make_provider(ADDRESS, storage, browser), "GET", url)
    assert answer.status_code == 200
    assert len(answer.json()["documents"]) > 2
    assert storage.tokens is not None
    assert storage.tokens.scope == "search ask"
    owner = people.get_by_email(container.database, ANN)
    (program,) = oauth_grants.list_programs(container.database, owner.created_at, owner.id)
    assert (program.name, program.grant.resource) == ("Official client", ADDRESS)


def test_it_goes_on_with_what_it_keeps_and_refreshes_it(app: Api, browser: TestClient) -> None:
    storage, url = Storage(), f"{ADDRESS}/api/documents"
    assert _request(app, _make_provider(ADDRESS, storage, browser), "GET", url).status_code == 200
    kept = storage.tokens
    later = _make_provider(ADDRESS, storage, browser)
    assert _request(app, later, "GET", url).status_code == 200
    assert storage.tokens == kept
    later.context.token_expiry_time = 1.0
    assert _request(app, later, "GET", url).status_code == 200
    assert kept is not None
    assert storage.tokens is not None
    assert storage.tokens.access_token != kept.access_token


def test_it_connects_to_mcp(app: Api, browser: TestClient) -> None:
    storage, url = Storage(), f"{ADDRESS}/mcp"
    answer = _request(app, _make_provider(url, storage, browser), "POST", url)
    assert answer.status_code != 401
    assert storage.client is not None
    assert storage.client.issuer == ADDRESS
    # What it has is for MCP alone.
    assert storage.tokens is not None
    bearer = {"authorization": f"Bearer {storage.tokens.access_token}"}
    program = TestClient(app, base_url=ADDRESS)
    assert program.get("/api/documents", headers=bearer).status_code == 401
