"""Clients of OAuth: anybody registers one, so that they are bounded, cleaned, and believed in nothing."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from backend.access.oauth import clients
from backend.access.oauth.clients import (
    FORGOTTEN_AFTER,
    LONGEST_NAME,
    MOST_BY_NETWORK,
    REGISTRATION_PERIOD,
    UNUSED_LIFETIME,
    ClientCredentials,
    ClientService,
    authenticate_client,
    clean_client_name,
)
from backend.access.oauth.errors import OAuthError
from backend.access.oauth.grants import REFRESH_LIFETIME, find_valid_access_token
from backend.store import audit
from backend.store.accounts import oauth_clients, oauth_grants
from backend.store.accounts.oauth_clients import OAuthClient
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.schema.oauth_tables import oauth_clients as table
from connectors.errors import NotFoundError, TemporarilyUnavailableError
from tests.support.oauth import CALLBACK
from tests.unit.backend.access.oauth.conftest import NOW, SITE, VISITOR, Flow, make_registration

SECOND = timedelta(seconds=1)
Register = Callable[..., OAuthClient]


def _ids(database: Database) -> set[str]:
    return {one.client.id for one in oauth_clients.list_used(database)}


def test_a_client_is_what_it_says(database: Database, register: Register) -> None:
    made = register()
    found = oauth_clients.find(database, made.id)
    assert found is not None
    assert (found.id, found.name, list(found.redirect_uris)) == (made.id, "Editor", [CALLBACK])
    assert (made.name, made.secret_digest, made.network) == ("Editor", None, "192.0.2.7")
    (entry,) = audit.list_entries(database)
    assert (entry.action, entry.subject) == ("register_client", f"client:{made.id}")
    assert (entry.actor, entry.address) == ("visitor", "192.0.2.7")
    assert entry.detail["name"] == "Editor"


def test_one_without_a_name_is_called_by_where_it_listens(register: Register) -> None:
    assert register("", ["https://editor.example.com/x"]).name == "editor.example.com"
    assert register("\u200b \u202e", ["http://localhost:1/x"]).name == "localhost:1"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Claude", "Claude"),
        ("  two\n\nlines\t", "two lines"),
        ("李安的编辑器", "李安的编辑器"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("evil\u202egnp.exe", "evil gnp.exe"),
        ("a\u2066b\u2069c", "a b c"),
        ("a\u200e\u200fb", "a b"),
        ("in\u200bvisible\u00ad", "invisible"),
        ("tag\U000e0041s", "tags"),
        ("nul\x00", "nul\ufffd"),
        ("line\u2028separator", "line separator"),
        ("\x1b[31mred", "[31mred"),
        ("x" * LONGEST_NAME, "x" * LONGEST_NAME),
    ],
)
def test_a_name_is_one_line_without_tricks(given: str, kept: str) -> None:
    assert clean_client_name(given) == kept


def test_a_long_name_is_refused(register: Register) -> None:
    with pytest.raises(OAuthError) as refused:
        register("x" * (LONGEST_NAME + 1))
    assert refused.value.code == "invalid_client_metadata"


@pytest.mark.parametrize("uris", [[], ["http://localhost/"] * 11, ["https://a/", "ftp://b/"]])
def test_each_redirect_uri_has_to_be_accepted(
    database: Database, register: Register, uris: list[str]
) -> None:
    with pytest.raises(OAuthError) as refused:
        register("Editor", uris)
    assert refused.value.code == "invalid_redirect_uri"
    assert audit.list_entries(database) == []


def test_a_secret_is_shown_once_and_proves_the_client(database: Database) -> None:
    service = ClientService(database, VISITOR)
    made = service.register(make_registration(auth_method="client_secret_basic"), NOW)
    assert made.secret is not None
    with database.reading() as connection:
        assert made.secret not in str(connection.execute(select(table)).all())
    assert made.secret not in str(audit.list_entries(database))
    proved = authenticate_client(database, ClientCredentials(made.client.id, made.secret))
    assert proved.id == made.client.id
    for wrong in (None, "", f"{made.secret}x", made.client.secret_digest, "é\x00"):
        with pytest.raises(OAuthError, match="its secret is wrong"):
            authenticate_client(database, ClientCredentials(made.client.id, wrong))


def test_a_public_client_has_no_secret(database: Database, register: Register) -> None:
    made = register()
    for none in (None, ""):
        assert authenticate_client(database, ClientCredentials(made.id, none)).id == made.id
    with pytest.raises(OAuthError):
        authenticate_client(database, ClientCredentials(made.id, "a secret"))


@pytest.mark.parametrize("client_id", ["", "absent", "a\x00", "' OR 1=1 --", "\ud800", "x" * 9_000])
def test_nobody_is_no_client(database: Database, register: Register, client_id: str) -> None:
    register()
    with pytest.raises(OAuthError) as refused:
        authenticate_client(database, ClientCredentials(client_id, None))
    assert refused.value.code == "invalid_client"
    with pytest.raises(NotFoundError):
        ClientService(database, VISITOR).delete(client_id)


def test_one_that_nobody_connects_is_forgotten_after_a_day(
    database: Database, register: Register
) -> None:
    old = register(now=NOW)
    register(now=NOW + UNUSED_LIFETIME - SECOND)
    assert old.id in _ids(database)
    register(now=NOW + UNUSED_LIFETIME)
    assert old.id not in _ids(database)
    assert len(_ids(database)) == 2


def test_one_that_is_connected_stays(flow: Flow, register: Register) -> None:
    flow.connect()
    register(now=NOW + REFRESH_LIFETIME - SECOND)
    assert flow.client.id in _ids(flow.database)
    # Its grant has ended, but its program still knows its id.
    register(now=NOW + FORGOTTEN_AFTER - SECOND)
    assert flow.client.id in _ids(flow.database)
    register(now=NOW + FORGOTTEN_AFTER)
    assert flow.client.id not in _ids(flow.database)


def test_a_network_that_registers_too_many_is_refused(
    database: Database, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_BY_NETWORK >= 10
    monkeypatch.setattr(clients, "MOST_BY_NETWORK", 3)
    for _ in range(3):
        register()
    with pytest.raises(TemporarilyUnavailableError) as refused:
        register()
    assert refused.value.retry_after == REGISTRATION_PERIOD
    elsewhere = ClientService(database, Actor("visitor", "192.0.2.8"))
    elsewhere.register(make_registration(), NOW)
    register(now=NOW + REGISTRATION_PERIOD)


def test_a_flood_pushes_out_the_oldest_that_nobody_connects(
    flow: Flow, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.connect()
    monkeypatch.setattr(clients, "MOST_UNUSED", 5)
    flood = [register(now=NOW + n * SECOND).id for n in range(1, 12)]
    assert _ids(flow.database) == {flow.client.id, *flood[-5:]}


def test_an_ipv6_network_counts_as_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_BY_NETWORK", 1)
    ClientService(database, Actor("visitor", "2001:db8::1")).register(make_registration(), NOW)
    with pytest.raises(TemporarilyUnavailableError):
        ClientService(database, Actor("visitor", "2001:db8::2")).register(make_registration(), NOW)


def test_a_deleted_one_takes_its_grants_with_it(flow: Flow) -> None:
    tokens = flow.connect()
    waiting = flow.approve()
    (used,) = oauth_clients.list_used(flow.database)
    assert (used.client.id, used.grants) == (flow.client.id, 2)
    ClientService(flow.database, Actor("user:ann@example.com")).delete(flow.client.id)
    assert find_valid_access_token(flow.database, tokens.access, f"{SITE}/mcp", NOW) is None
    with pytest.raises(OAuthError):
        flow.refresh(tokens.refresh)
    with pytest.raises(OAuthError):
        flow.service.redeem_code(flow.exchange(waiting), NOW)
    assert oauth_grants.list_programs(flow.database, NOW, flow.person.id) == []
    assert audit.list_entries(flow.database)[0].action == "delete_client"


def test_the_time_of_registration_is_kept(database: Database, register: Register) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=NOW.tzinfo)
    made = register(now=moment)
    found = oauth_clients.find(database, made.id)
    assert found is not None
    assert found.created_at == moment
