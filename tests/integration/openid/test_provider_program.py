"""Sign-ins through a provider program that others wrote, `oidc-provider-mock`, in a process of its own."""

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import IO
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from backend.access.openid.code_flow import Attempt, AuthorizationResponse, CodeFlow
from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.provider import Provider, ProviderSettings
from connectors.errors import NotConfiguredError
from tests.support.openid_provider import REDIRECT_URI

PROGRAM = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", "0"]
ANN = {"email": "ann@example.com", "email_verified": True, "name": "Ann", "groups": ["legal"]}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    environment = os.environ | {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(PROGRAM, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    address: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process.stderr, address))
    reader.start()
    try:
        yield address.get(timeout=60)
    finally:
        process.kill()
        process.wait()
        reader.join()


def _read_lines(lines: IO[str], address: "queue.SimpleQueue[str]") -> None:
    """It says where it is once it listens. What it says later is read too, or it would wait for that."""
    with lines:
        for line in lines:
            if found := re.search(r"running on (http://\S+)", line):
                address.put(found[1])


@pytest.fixture(scope="module")
def settings(issuer: str) -> ProviderSettings:
    """Quarry, as it is registered there."""
    client = {"redirect_uris": [REDIRECT_URI], "token_endpoint_auth_method": "client_secret_basic"}
    registered = httpx.post(f"{issuer}/oauth2/clients", json=client).raise_for_status().json()
    return ProviderSettings(
        issuer=issuer,
        client_id=registered["client_id"],
        client_secret=registered["client_secret"],
    )


@contextmanager
def connected(settings: ProviderSettings) -> Iterator[CodeFlow]:
    with closing(Provider(settings)) as provider:
        yield CodeFlow(provider)


@pytest.fixture
def flow(settings: ProviderSettings) -> Iterator[CodeFlow]:
    httpx.put(f"{settings.issuer}/users/ann", json=ANN).raise_for_status()
    with connected(settings) as flow:
        yield flow


def go_there(flow: CodeFlow) -> tuple[AuthorizationResponse, Attempt]:
    """Enter the form of the program as Ann."""
    url, attempt = flow.begin(REDIRECT_URI, datetime.now(UTC))
    location = httpx.post(url, data={"sub": "ann"}).headers["location"]
    query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    return AuthorizationResponse.model_validate(query), attempt


def test_a_person_is_signed_in_with_address_and_groups(
    flow: CodeFlow, settings: ProviderSettings
) -> None:
    identity = flow.finish(*go_there(flow), datetime.now(UTC))
    assert (identity.issuer, identity.subject) == (settings.issuer, "ann")
    assert (identity.email, identity.email_verified) == ("ann@example.com", True)
    assert (identity.name, identity.groups) == ("Ann", frozenset({"legal"}))


def test_groups_and_verification_are_those_of_the_moment(
    flow: CodeFlow, settings: ProviderSettings
) -> None:
    changed = {"email": "ann@example.com", "groups": ["sales"]}
    httpx.put(f"{settings.issuer}/users/ann", json=changed).raise_for_status()
    identity = flow.finish(*go_there(flow), datetime.now(UTC))
    assert (identity.email_verified, identity.groups) == (False, frozenset({"sales"}))


def test_a_code_is_good_once(flow: CodeFlow) -> None:
    response, attempt = go_there(flow)
    flow.finish(response, attempt, datetime.now(UTC))
    with pytest.raises(SignInRefusedError, match="used before"):
        flow.finish(response, attempt, datetime.now(UTC))


@pytest.mark.parametrize("minutes", [5, -5])
def test_a_clock_that_is_five_minutes_off_is_refused(flow: CodeFlow, minutes: int) -> None:
    response, attempt = go_there(flow)
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    with pytest.raises(SignInRefusedError, match="The clock of the provider"):
        flow.finish(response, replace(attempt, begun_at=now), now)


def test_an_id_token_for_another_attempt_is_refused(flow: CodeFlow) -> None:
    response, attempt = go_there(flow)
    with pytest.raises(SignInRefusedError, match="another sign-in"):
        flow.finish(response, replace(attempt, nonce="another"), datetime.now(UTC))


def test_another_client_is_not_given_tokens(flow: CodeFlow, settings: ProviderSettings) -> None:
    response, attempt = go_there(flow)
    with (
        connected(replace(settings, client_secret="wrong")) as stranger,
        pytest.raises(NotConfiguredError, match="QUARRY_OIDC_CLIENT_SECRET"),
    ):
        stranger.finish(response, attempt, datetime.now(UTC))


def test_an_issuer_that_is_spelled_otherwise_is_refused(settings: ProviderSettings) -> None:
    other = replace(settings, issuer=f"{settings.issuer}/")
    with (
        connected(other) as flow,
        pytest.raises(NotConfiguredError, match="character by character"),
    ):
        flow.begin(REDIRECT_URI, datetime.now(UTC))
