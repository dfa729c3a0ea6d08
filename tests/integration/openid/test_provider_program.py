"""Sign-ins through a provider program that others wrote, `oidc-provider-mock`, in a process of its own."""

import base64
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import RSAKey

from backend.access.openid.code_flow import Attempt, AuthorizationResponse, CodeFlow
from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.provider import Provider, ProviderSettings
from connectors.errors import NotConfiguredError
from connectors.http_client.response import Response
from tests.support.openid_provider import REDIRECT_URI
from tests.support.provider_program import ProviderProgram, provider_program

ANN = {"email": "ann@example.com", "email_verified": True, "name": "Ann", "groups": ["legal"]}


@pytest.fixture(scope="module")
def program() -> Iterator[ProviderProgram]:
    with provider_program() as running:
        yield running


@pytest.fixture(scope="module")
def settings(program: ProviderProgram) -> ProviderSettings:
    """Quarry, as it is registered there."""
    return program.register(REDIRECT_URI)


@contextmanager
def connected(settings: ProviderSettings) -> Iterator[CodeFlow]:
    with closing(Provider(settings)) as provider:
        yield CodeFlow(provider)


@pytest.fixture
def flow(program: ProviderProgram, settings: ProviderSettings) -> Iterator[CodeFlow]:
    program.put("ann", **ANN)
    with connected(settings) as flow:
        yield flow


def go_there(flow: CodeFlow) -> tuple[AuthorizationResponse, Attempt]:
    """Enter the form of the program as Ann."""
    url, attempt = flow.begin(REDIRECT_URI, datetime.now(UTC))
    location = httpx.post(url, data={"sub": "ann"}).headers["location"]
    query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    return AuthorizationResponse.model_validate(query), attempt


def refuse(flow: CodeFlow, message: str) -> None:
    with pytest.raises(SignInRefusedError, match=message):
        flow.finish(*go_there(flow), datetime.now(UTC))


def test_a_person_is_signed_in_with_address_and_groups(
    flow: CodeFlow, settings: ProviderSettings
) -> None:
    identity = flow.finish(*go_there(flow), datetime.now(UTC))
    assert (identity.issuer, identity.subject) == (settings.issuer, "ann")
    assert (identity.email, identity.email_verified) == ("ann@example.com", True)
    assert (identity.name, identity.groups) == ("Ann", frozenset({"legal"}))


def test_groups_and_verification_are_those_of_the_moment(
    flow: CodeFlow, program: ProviderProgram
) -> None:
    program.put("ann", email="ann@example.com", groups=["sales"])
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


# What the program signs, and is not for this sign-in.


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"iss": "https://other.example.com"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "another"}, "another application"),
        ({"aud": ["another"]}, "another application"),
        ({"aud": None}, "another application"),
        ({"azp": "another"}, "another application"),
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"exp": 1_000_000_000}, "has expired"),
        ({"iat": 1_000_000_000}, "The clock of the provider"),
        ({"nbf": 10_000_000_000}, "not valid yet"),
    ],
)
def test_a_token_that_states_something_else_is_refused(
    flow: CodeFlow, program: ProviderProgram, claims: dict[str, Any], message: str
) -> None:
    program.put("ann", **ANN, **claims)
    refuse(flow, message)


def test_a_token_for_another_application_of_the_provider_is_refused(
    flow: CodeFlow, program: ProviderProgram, settings: ProviderSettings
) -> None:
    """A code that somebody was given there does not serve here either."""
    _, attempt = go_there(flow)
    with connected(program.register(REDIRECT_URI)) as other:
        foreign, _ = go_there(other)
    stolen = foreign.model_copy(update={"state": attempt.state})
    with pytest.raises(SignInRefusedError, match="does not accept the code"):
        flow.finish(stolen, attempt, datetime.now(UTC))
    program.put("ann", **ANN, aud=[settings.client_id, "another"])
    refuse(flow, "another application")


def test_the_code_of_another_browser_is_refused(flow: CodeFlow) -> None:
    """The program does not know PKCE, so that the nonce alone tells them apart."""
    foreign, _ = go_there(flow)
    _, attempt = go_there(flow)
    injected = foreign.model_copy(update={"state": attempt.state})
    with pytest.raises(SignInRefusedError, match="another sign-in"):
        flow.finish(injected, attempt, datetime.now(UTC))


def _encode(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def _unsigned(token: str, key: RSAKey) -> str:
    del key
    return ".".join([_encode(b'{"alg":"none"}'), token.split(".")[1], ""])


def _signed_with_the_public_key(token: str, key: RSAKey) -> str:
    signed = ".".join([_encode(b'{"alg":"HS256"}'), token.split(".")[1]])
    pem = key.as_pem(private=False)
    return f"{signed}.{_encode(hmac.digest(pem, signed.encode(), 'sha256'))}"


def _with_a_key_of_its_own(token: str, key: RSAKey) -> str:
    """The header brings the key by which it verifies."""
    del key
    own = RSAKey.generate_key(2048)
    header = {"alg": "RS256", "jwk": own.as_dict(private=False)}
    claims = base64.urlsafe_b64decode(token.split(".")[1] + "==")
    return jws.serialize_compact(header, claims, own)


class _Altered(Provider):
    """Between Quarry and the program somebody replaces the ID token."""

    alter: Callable[[str, RSAKey], str]

    def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Response:
        response = super().post_form(url, form, headers)
        (published,) = self.get_json(self.read_metadata().jwks_uri, "the keys")["keys"]
        tokens = json.loads(response.body)
        tokens["id_token"] = self.alter(tokens["id_token"], RSAKey.import_key(published))
        return replace(response, body=json.dumps(tokens).encode())


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (_unsigned, "an algorithm that is not accepted: 'none'"),
        (_signed_with_the_public_key, "an algorithm that is not accepted: 'HS256'"),
        (_with_a_key_of_its_own, "its signature is wrong"),
    ],
)
def test_a_token_that_the_program_did_not_sign_is_refused(
    flow: CodeFlow,
    settings: ProviderSettings,
    alter: Callable[[str, RSAKey], str],
    message: str,
) -> None:
    assert flow.finish(*go_there(flow), datetime.now(UTC)).subject == "ann"
    with closing(_Altered(settings)) as provider:
        provider.alter = alter
        refuse(CodeFlow(provider), message)


def test_another_key_is_learnt_where_tokens_name_none() -> None:
    """The program makes another one when it starts again; the former one is good no longer."""
    seconds = [0.0]
    with ExitStack() as stack:
        with provider_program() as program:
            provider = stack.enter_context(closing(Provider(program.register(REDIRECT_URI))))
            flow = CodeFlow(provider, clock=lambda: seconds[0])
            assert flow.finish(*go_there(flow), datetime.now(UTC)).subject == "ann"
        stack.enter_context(provider_program(program.port))
        refuse(flow, "its signature is wrong")  # the keys were asked for a moment ago
        seconds[0] += 60
        assert flow.finish(*go_there(flow), datetime.now(UTC)).subject == "ann"
