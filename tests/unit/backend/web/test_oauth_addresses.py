"""Under which name the authorization server is known: its public address, or that of the machine; and none without accounts."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.api.public_address import PublicAddress
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.oauth import CLIENT, register
from tests.unit.backend.api.conftest import ADDRESS, make_container

SITE = "https://quarry.example.com"
OF_SERVER = "/.well-known/oauth-authorization-server"
OF_MCP = "/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return make_container(tmp_path)


def _serve(container: Container, listening: Listening, address: str) -> TestClient:
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    app = make_app(container, owner, listening)
    return TestClient(app, base_url=address, follow_redirects=False)


def _challenge(client: TestClient, host: str) -> str:
    """Return what who proves nothing is told at `/mcp`."""
    answer = client.post("/mcp", headers={"host": host.removeprefix("http://")})
    assert answer.status_code == 401
    return str(answer.headers["www-authenticate"])


@pytest.fixture
def machine(container: Container) -> TestClient:
    return _serve(container, Listening(address="127.0.0.1"), ADDRESS)


def test_without_accounts_no_program_is_connected(
    machine: TestClient, container: Container
) -> None:
    owner = {"authorization": f"Bearer {container.sign_in.machine_secret.value}"}
    for headers in ({}, owner):
        for path in (
            OF_SERVER,
            OF_MCP,
            f"{OF_SERVER}/mcp",
            "/.well-known/oauth-protected-resource",
        ):
            answer = machine.get(path, headers=headers)
            assert answer.status_code == 404
            assert "quarry users invite" in answer.json()["detail"]
        for path in ("/oauth/register", "/oauth/token", "/oauth/revoke"):
            assert machine.post(path, json=CLIENT, headers=headers).status_code == 404
        page = machine.get("/oauth/authorize?client_id=x", headers=headers)
        assert page.status_code == 404
        assert "<code>quarry users invite</code>" in page.text
        assert "<code>quarry tokens create</code>" in page.text


def test_programs_are_connected_once_there_is_an_account(
    machine: TestClient, container: Container
) -> None:
    assert machine.get(OF_SERVER).status_code == 404
    assert machine.post("/mcp").headers["www-authenticate"] == 'Bearer realm="Quarry"'
    add_person(container.database, "ann@example.com", Role.ADMIN)
    assert f'resource_metadata="{ADDRESS}{OF_MCP}"' in _challenge(machine, ADDRESS)
    assert machine.get(OF_SERVER).json()["issuer"] == ADDRESS
    assert register(machine).id


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost:8321", "LOCALHOST:8321", "[::1]:80"])
def test_on_one_machine_the_issuer_is_the_address_that_is_asked(
    machine: TestClient, container: Container, host: str
) -> None:
    add_person(container.database, "ann@example.com", Role.ADMIN)
    found = machine.get(OF_MCP, headers={"host": host}).json()
    assert found["resource"] == f"http://{host.lower()}/mcp"
    assert f'resource_metadata="http://{host.lower()}{OF_MCP}"' in _challenge(machine, host)
    assert found["authorization_servers"] == [f"http://{host.lower()}"]


@pytest.mark.parametrize(
    "host", ["quarry.example.com", "quarry.example.com:443", "QUARRY.example.com"]
)
def test_a_site_has_one_issuer_however_it_is_reached(container: Container, host: str) -> None:
    """A proxy may speak TLS for it, so that requests arrive over http."""
    site = Listening(address="0.0.0.0", public_address=PublicAddress.parse(SITE))
    client = _serve(container, site, "http://quarry.example.com")
    found = client.get(OF_SERVER, headers={"host": host}).json()
    assert found["issuer"] == SITE
    assert found["token_endpoint"] == f"{SITE}/oauth/token"
    assert client.get(OF_MCP, headers={"host": host}).json()["resource"] == f"{SITE}/mcp"
    assert f'resource_metadata="{SITE}{OF_MCP}"' in _challenge(client, host)
    forged = {
        "host": host,
        "x-forwarded-host": "evil.example.com",
        "forwarded": "host=evil.example.com",
    }
    assert client.get(OF_SERVER, headers=forged).json()["issuer"] == SITE
    assert client.get(OF_SERVER, headers={"host": "evil.example.com"}).status_code == 421
