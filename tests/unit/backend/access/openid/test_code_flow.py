"""Sign-ins through a provider on this machine, and all that must not be one."""

import base64
import hmac
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jws, jwt
from joserfc.jwk import RSAKey

from backend.access.openid.claims import Identity
from backend.access.openid.code_flow import CodeFlow
from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.provider import Provider, ProviderSettings
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    REDIRECT_URI,
    OpenIdProvider,
    connect,
    go_there,
    make_key,
    sign_in,
)


def test_a_sign_in_returns_who_came_back(flow: CodeFlow, provider: OpenIdProvider) -> None:
    provider.claims |= {"email": "Ann@Example.com", "email_verified": True, "name": "Ann"}
    provider.claims["groups"] = ["engineering", "legal"]
    assert sign_in(flow) == Identity(
        issuer=provider.issuer,
        subject="248289761001",
        email="ann@example.com",
        email_verified=True,
        name="Ann",
        groups=frozenset({"engineering", "legal"}),
    )
    assert "/userinfo" not in provider.requests


def test_what_the_id_token_leaves_out_is_asked_for(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.userinfo = {
        "email": "ann@example.com",
        "email_verified": True,
        "preferred_username": "ann",
        "groups": "engineering",
    }
    identity = sign_in(flow)
    assert (identity.email, identity.email_verified) == ("ann@example.com", True)
    assert (identity.name, identity.groups) == ("ann", frozenset({"engineering"}))


def test_keys_and_metadata_are_fetched_once(flow: CodeFlow, provider: OpenIdProvider) -> None:
    for _ in range(3):
        sign_in(flow)
    assert provider.requests.count("/jwks") == 1
    assert provider.requests.count("/.well-known/openid-configuration") == 1


def _encode(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def _unsigned(claims: dict[str, Any]) -> str:
    return f"{_encode({'alg': 'none'})}.{_encode(claims)}."


def _signed_with_a_public_key(claims: dict[str, Any]) -> str:
    """The public key of the provider taken as a secret, which the library itself refuses to do."""
    signed = ".".join(map(_encode, [{"alg": "HS256", "kid": "first"}, claims]))
    key = make_key("first")
    assert isinstance(key, RSAKey)
    signature = hmac.digest(key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _signed_by_another(claims: dict[str, Any]) -> str:
    header = {"alg": "RS256", "kid": "first"}
    return jws.serialize_compact(header, json.dumps(claims), make_key("other"))


def _altered(claims: dict[str, Any]) -> str:
    header = {"alg": "RS256", "kid": "first"}
    token = jws.serialize_compact(header, json.dumps(claims), make_key("first"))
    header_part, _, signature = token.split(".")
    return ".".join([header_part, _encode(claims | {"sub": "somebody else"}), signature])


def _with_header(key: str = "attacker", **header: Any) -> Callable[[dict[str, Any]], str]:
    """Signed by a key of the attacker, which the header brings or says where to find; or with what nobody understands."""

    def sign(claims: dict[str, Any]) -> str:
        signed = ".".join(map(_encode, [{"alg": "RS256", **header}, claims]))
        own = make_key(key)
        assert isinstance(own, RSAKey)
        assert own.private_key is not None
        signature = own.private_key.sign(signed.encode(), PKCS1v15(), SHA256())
        return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    return sign


def test_a_header_that_says_nothing_is_accepted(flow: CodeFlow, provider: OpenIdProvider) -> None:
    """So that those below are refused for what they say."""
    provider.sign = _with_header("first", kid="first", x=1)
    assert sign_in(flow).subject == "248289761001"


def _own_key() -> dict[str, Any]:
    return dict(make_key("attacker").as_dict(private=False))


@pytest.mark.parametrize(
    ("sign", "message"),
    [
        (_with_header(jwk=_own_key()), "its signature is wrong"),
        (_with_header(jku="http://127.0.0.1:1/keys"), "its signature is wrong"),
        (_with_header(x5u="http://127.0.0.1:1/keys"), "its signature is wrong"),
        (_with_header(kid="../first"), "a key that the provider does not have"),
        (_with_header(kid=["first"]), "."),
        (_with_header("first", kid="first", crit=["x"], x=1), "its signature is wrong"),
        (_with_header("first", kid="first", crit=["b64"], b64=False), "its signature is wrong"),
        (_with_header(alg="rs256"), "an algorithm that is not accepted: 'rs256'"),
        (_with_header(alg="ES256", kid="first"), "a key that the provider does not have"),
        (_with_header(alg=["RS256"]), "."),
        (_unsigned, "an algorithm that is not accepted: 'none'"),
        (_signed_with_a_public_key, "an algorithm that is not accepted: 'HS256'"),
        (_signed_by_another, "its signature is wrong"),
        (_altered, "its signature is wrong"),
        (lambda _: "no.token", "its signature is wrong"),
        (lambda _: "", "its signature is wrong"),
    ],
)
def test_a_token_that_the_provider_did_not_sign_is_refused(
    flow: CodeFlow, provider: OpenIdProvider, sign: Callable[[dict[str, Any]], str], message: str
) -> None:
    provider.sign = sign
    with pytest.raises(SignInRefusedError, match=message):
        sign_in(flow)


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"iss": "https://other.example.com"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "another"}, "another application"),
        ({"aud": None}, "another application"),
        ({"aud": []}, "another application"),
        ({"aud": [CLIENT_ID, "another"]}, "another application"),
        ({"aud": [CLIENT_ID, "another"], "azp": "another"}, "another application"),
        ({"azp": "another"}, "another application"),
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"nonce": 5}, "another sign-in"),
        ({"sub": None}, "whose it is"),
        ({"sub": ""}, "whose it is"),
        ({"sub": 5}, "whose it is"),
        ({"sub": "x" * 256}, "whose it is"),
        ({"exp": 1_000_000_000}, "has expired"),
        ({"exp": None}, r"\(exp\)"),
        ({"exp": True}, r"\(exp\)"),
        ({"iat": "now"}, r"\(iat\)"),
        ({"nbf": 10_000_000_000}, "not valid yet"),
    ],
)
def test_a_token_that_states_something_else_is_refused(
    flow: CodeFlow, provider: OpenIdProvider, claims: dict[str, Any], message: str
) -> None:
    provider.replaced = claims
    with pytest.raises(SignInRefusedError, match=message):
        sign_in(flow)


def test_a_token_for_several_applications_names_the_one_that_asked(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.replaced = {"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID}
    assert sign_in(flow).subject == "248289761001"


@pytest.mark.parametrize(("offset", "direction"), [(300.0, "ahead of"), (-300.0, "behind")])
def test_a_clock_that_is_five_minutes_off_is_refused_and_named(
    flow: CodeFlow, provider: OpenIdProvider, offset: float, direction: str
) -> None:
    provider.clock_offset = offset
    message = rf"The clock of the provider is (299|3\d\d) s {direction} the clock of Quarry"
    with pytest.raises(SignInRefusedError, match=message):
        sign_in(flow)


@pytest.mark.parametrize("offset", [60.0, -60.0])
def test_a_clock_that_is_a_minute_off_is_accepted(
    flow: CodeFlow, provider: OpenIdProvider, offset: float
) -> None:
    provider.clock_offset = offset
    assert sign_in(flow).subject == "248289761001"


def test_a_code_is_good_once(flow: CodeFlow) -> None:
    response, attempt = go_there(flow)
    flow.finish(response, attempt, datetime.now(UTC))
    with pytest.raises(SignInRefusedError, match="used before"):
        flow.finish(response, attempt, datetime.now(UTC))


def test_a_code_is_good_only_with_the_verifier_of_its_browser(flow: CodeFlow) -> None:
    response, attempt = go_there(flow)
    with pytest.raises(SignInRefusedError, match="does not accept the code"):
        flow.finish(response, replace(attempt, verifier="x" * 64), datetime.now(UTC))


def test_the_state_of_another_browser_is_refused(flow: CodeFlow, provider: OpenIdProvider) -> None:
    response, _ = go_there(flow)
    _, attempt = go_there(flow)
    with pytest.raises(SignInRefusedError, match="another sign-in"):
        flow.finish(response, attempt, datetime.now(UTC))
    assert "/token" not in provider.requests


def test_a_sign_in_that_took_too_long_is_refused(flow: CodeFlow) -> None:
    response, attempt = go_there(flow)
    with pytest.raises(SignInRefusedError, match="too long"):
        flow.finish(response, attempt, attempt.begun_at + timedelta(minutes=10))


@pytest.mark.parametrize("issuer", ["https://other.example.com", ""])
def test_the_response_of_another_provider_is_refused(
    flow: CodeFlow, provider: OpenIdProvider, issuer: str
) -> None:
    provider.response_parameters = {"iss": issuer}
    with pytest.raises(SignInRefusedError, match="Another provider"):
        sign_in(flow)
    assert "/token" not in provider.requests


def test_a_response_without_issuer_is_accepted_where_the_provider_promises_none(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": False}
    response, attempt = go_there(flow)
    unnamed = response.model_copy(update={"iss": None})
    assert flow.finish(unnamed, attempt, datetime.now(UTC)).subject == "248289761001"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("access_denied", "cancelled"),
        ("temporarily_unavailable", "the error temporarily_unavailable"),
        ("<b>Call 555</b>", "reports an error"),
    ],
)
def test_an_error_of_the_provider_is_shown_if_it_is_a_code(
    flow: CodeFlow, provider: OpenIdProvider, error: str, message: str
) -> None:
    provider.response_parameters = {"error": error}
    with pytest.raises(SignInRefusedError, match=message):
        sign_in(flow)


def test_the_client_proves_itself_in_the_form_where_the_provider_wants_that(
    provider: OpenIdProvider,
) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    with closing(connect(provider)) as connected:
        assert sign_in(CodeFlow(connected)).subject == "248289761001"


def test_a_wrong_client_secret_is_a_matter_of_the_settings(provider: OpenIdProvider) -> None:
    with (
        closing(connect(provider, client_secret="wrong")) as connected,
        pytest.raises(NotConfiguredError, match="QUARRY_OIDC_CLIENT_SECRET"),
    ):
        sign_in(CodeFlow(connected))


def test_keys_that_are_rotated_between_two_sign_ins_are_learned(provider: OpenIdProvider) -> None:
    """The pause between two requests for keys is over: a second flow, whose keys are as old as its first sign-in."""
    seconds = [0.0]
    with closing(connect(provider)) as connected:
        flow = CodeFlow(connected, clock=lambda: seconds[0])
        sign_in(flow)
        provider.key = make_key("second")
        seconds[0] += 60
        assert sign_in(flow).subject == "248289761001"
        provider.key, provider.algorithm = make_key("ec"), "ES256"
        seconds[0] += 60
        assert sign_in(flow).subject == "248289761001"
        provider.published = [make_key("second")]
        seconds[0] += 3600  # a key that is not shown any more is forgotten
        with pytest.raises(SignInRefusedError, match="a key that the provider does not have"):
            sign_in(flow)
    assert provider.requests.count("/jwks") == 4


@pytest.mark.parametrize("header", [{"alg": "RS256"}, {"alg": "RS256", "kid": "same"}])
def test_keys_that_are_rotated_without_another_name_are_learned(
    provider: OpenIdProvider, header: dict[str, str]
) -> None:
    """The tokens name no key, or the new one has the name of the former."""
    seconds = [0.0]

    def rotate(name: str) -> None:
        key = RSAKey.import_key({**make_key(name).as_dict(private=True), "kid": "same"})
        provider.published = [key]
        provider.sign = lambda claims: jwt.encode(header, claims, key)

    with closing(connect(provider)) as connected:
        flow = CodeFlow(connected, clock=lambda: seconds[0])
        rotate("first")
        sign_in(flow)
        rotate("second")
        with pytest.raises(SignInRefusedError, match="its signature is wrong"):
            sign_in(flow)
        assert provider.requests.count("/jwks") == 1
        seconds[0] += 60
        assert sign_in(flow).subject == "248289761001"
        provider.sign = lambda claims: jwt.encode(header, claims, make_key("other"))
        seconds[0] += 60
        with pytest.raises(SignInRefusedError, match="its signature is wrong"):
            sign_in(flow)
    assert provider.requests.count("/jwks") == 3


def test_a_provider_that_does_not_respond_is_asked_again_later(provider: OpenIdProvider) -> None:
    seconds = [0.0]
    settings = ProviderSettings(
        issuer=provider.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET
    )
    provider.failing = {"/.well-known/openid-configuration"}
    with closing(Provider(settings, clock=lambda: seconds[0])) as connected:
        flow = CodeFlow(connected)
        for _ in range(3):
            with pytest.raises(TemporarilyUnavailableError):
                flow.begin(REDIRECT_URI, datetime.now(UTC))
        assert len(provider.requests) == 2  # one try, and its repetition
        provider.failing = set()
        seconds[0] += 5
        assert sign_in(flow).subject == "248289761001"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"issuer": "https://other.example.com"}, "calls itself 'https://other.example.com'"),
        ({"token_endpoint": None}, "does not describe an OpenID provider"),
        ({"token_endpoint": "http://other.example.com/token"}, "not encrypted"),
        ({"userinfo_endpoint": "ftp://127.0.0.1/"}, "not encrypted"),
    ],
)
def test_a_provider_that_cannot_be_trusted_is_a_matter_of_the_settings(
    flow: CodeFlow, provider: OpenIdProvider, metadata: dict[str, Any], message: str
) -> None:
    provider.metadata = metadata
    with pytest.raises(NotConfiguredError, match=message):
        flow.begin(REDIRECT_URI, datetime.now(UTC))


def test_a_provider_does_not_lead_into_the_private_network(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.metadata = {"token_endpoint": "https://10.0.0.1/token"}
    with pytest.raises(NotConfiguredError, match="only the host of QUARRY_OIDC_ISSUER"):
        sign_in(flow)


@pytest.mark.parametrize("issuer", ["http://idp.example.com", "ftp://idp.example.com", "idp"])
def test_an_issuer_is_encrypted_unless_it_is_on_this_machine(issuer: str) -> None:
    with pytest.raises(NotConfiguredError, match="QUARRY_OIDC_ISSUER"):
        Provider(ProviderSettings(issuer=issuer, client_id=CLIENT_ID))


def test_a_file_that_holds_no_authority_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotConfiguredError, match="QUARRY_OIDC_CA"):
        Provider(
            ProviderSettings(
                issuer="https://idp.example.com", client_id=CLIENT_ID, authority=tmp_path / "none"
            )
        )
