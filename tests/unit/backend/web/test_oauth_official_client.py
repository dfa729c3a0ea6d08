"""The OAuth client of MCP's official SDK connects itself: discovery, registration, consent, tokens, refresh."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session
from backend.api.account_authentication import AccountCookies
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store.accounts import oauth_grants, people
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.oauth import AT_A_PORT, allow
from tests.support.running_app import run_app
from tests.unit.backend.api.conftest import connected, make_container, write_files

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
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    folder: Path = tmp_path_factory.mktemp("files")
    write_files(folder)
    made = make_container(tmp_path_factory.mktemp("home"))
    with closing(made.database):
        connected(made, folder)
        add_person(made.database, ANN, Role.ADMIN)
        yield made


@pytest.fixture(scope="module")
def url(container: Container) -> Iterator[str]:
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    with run_app(make_app(container, owner, Listening(address="127.0.0.1"))) as address:
        yield address


@pytest.fixture
def browser(url: str, container: Container) -> Iterator[httpx2.Client]:
    """In which Ann has signed in."""
    person = people.get_by_email(container.database, ANN)
    session = begin_session(container.database, person, Visitor())
    cookie = AccountCookies.of_machine(container.sign_in.machine_secret).session
    with httpx2.Client(base_url=url, cookies={cookie: session}, timeout=60) as made:
        yield made


def _make_provider(resource: str, storage: Storage, browser: httpx2.Client) -> OAuthClientProvider:
    """Return the client; the person at the browser allows what it asks for."""
    asked: list[str] = []

    async def open_browser(address: str) -> None:
        asked.append(address)

    async def wait_for_answer() -> AuthorizationCodeResult:
        told = await anyio.to_thread.run_sync(lambda: allow(browser, asked.pop()))
        return AuthorizationCodeResult(code=told["code"], state=told["state"], iss=told["iss"])

    metadata = OAuthClientMetadata(client_name="Official client", redirect_uris=[AnyUrl(AT_A_PORT)])
    return OAuthClientProvider(resource, metadata, storage, open_browser, wait_for_answer)


def _request(provider: OAuthClientProvider, method: str, address: str) -> httpx2.Response:
    async def send() -> httpx2.Response:
        async with httpx2.AsyncClient(auth=provider, timeout=60) as client:
            return await client.request(method, address)

    return anyio.run(send)


def test_it_connects_to_the_api_and_reads_what_its_person_reads(
    url: str, browser: httpx2.Client, container: Container
) -> None:
    storage = Storage()
    answer = _request(_make_provider(url, storage, browser), "GET", f"{url}/api/documents")
    assert answer.status_code == 200
    assert len(answer.json()["documents"]) > 2
    assert storage.tokens is not None
    assert storage.tokens.scope == "search ask"
    owner = people.get_by_email(container.database, ANN)
    (program,) = oauth_grants.list_programs(container.database, owner.created_at, owner.id)
    assert (program.name, program.grant.resource) == ("Official client", url)


def test_it_goes_on_with_what_it_keeps_and_refreshes_it(url: str, browser: httpx2.Client) -> None:
    storage, documents = Storage(), f"{url}/api/documents"
    first = _make_provider(url, storage, browser)
    assert _request(first, "GET", documents).status_code == 200
    kept = storage.tokens
    later = _make_provider(url, storage, browser)
    assert _request(later, "GET", documents).status_code == 200
    assert storage.tokens == kept
    later.context.token_expiry_time = 1.0
    assert _request(later, "GET", documents).status_code == 200
    assert kept is not None
    assert storage.tokens is not None
    assert storage.tokens.access_token != kept.access_token


def test_it_connects_to_mcp(url: str, browser: httpx2.Client) -> None:
    storage = Storage()
    answer = _request(_make_provider(f"{url}/mcp", storage, browser), "POST", f"{url}/mcp")
    assert answer.status_code != 401
    assert storage.client is not None
    assert storage.client.issuer == url
    # What it has is for MCP alone.
    assert storage.tokens is not None
    bearer = {"authorization": f"Bearer {storage.tokens.access_token}"}
    assert httpx2.get(f"{url}/api/documents", headers=bearer, timeout=60).status_code == 401
