"""What is taken over of somebody, from the ID token, the user information and the groups."""

from typing import Any

import pytest

from backend.access.openid.code_flow import CodeFlow
from backend.access.openid.errors import SignInRefusedError
from tests.support.openid_provider import OpenIdProvider, sign_in

ANN = "ann@example.com"


@pytest.mark.parametrize(
    ("token", "userinfo", "expected"),
    [
        ({"email": ANN, "email_verified": True}, {}, (ANN, True)),
        ({"email": ANN, "email_verified": "true"}, {}, (ANN, True)),
        ({"email": ANN, "xms_edov": True}, {}, (ANN, True)),
        ({"email": ANN, "email_verified": False}, {}, (ANN, False)),
        ({"email": ANN, "email_verified": None}, {}, (ANN, False)),
        ({"email": ANN, "email_verified": "false"}, {}, (ANN, False)),
        ({"email": ANN, "email_verified": 2}, {}, (ANN, False)),
        ({"email": ANN}, {}, (ANN, False)),
        ({}, {"email": f" {ANN.upper()}", "email_verified": True}, (ANN, True)),
        ({"email": ANN}, {"email": ANN, "email_verified": True}, (ANN, True)),
        # What is said of one address says nothing of another.
        ({"email": ANN}, {"email": "eve@example.com", "email_verified": True}, (ANN, False)),
        ({"email": ANN}, {"email_verified": True}, (ANN, False)),
        ({"email_verified": True}, {"email": ANN}, (ANN, False)),
        # One doubt is enough.
        (
            {"email": ANN, "email_verified": False},
            {"email": ANN, "email_verified": True},
            (ANN, False),
        ),
        ({"email": ANN, "email_verified": True, "xms_edov": False}, {}, (ANN, False)),
        ({"email_verified": True}, {}, (None, False)),
        ({"email": "", "email_verified": True}, {}, (None, False)),
    ],
)
def test_an_address_is_verified_where_the_provider_says_so_of_it(
    flow: CodeFlow,
    provider: OpenIdProvider,
    token: dict[str, Any],
    userinfo: dict[str, Any],
    expected: tuple[str | None, bool],
) -> None:
    provider.claims |= token
    provider.userinfo = userinfo
    identity = sign_in(flow)
    assert (identity.email, identity.email_verified) == expected


def test_user_information_of_somebody_else_is_refused(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.userinfo = {"sub": "another", "email": ANN, "email_verified": True}
    with pytest.raises(SignInRefusedError, match="of somebody else"):
        sign_in(flow)


def test_groups_are_those_of_this_sign_in(flow: CodeFlow, provider: OpenIdProvider) -> None:
    provider.claims["groups"] = ["engineering", " legal ", ""]
    assert sign_in(flow).groups == {"engineering", "legal"}
    provider.claims["groups"] = ["sales"]
    assert sign_in(flow).groups == {"sales"}
    provider.claims["groups"] = None
    assert sign_in(flow).groups == set()
    provider.claims["groups"] = ["sales"]
    assert sign_in(flow).groups == {"sales"}
    del provider.claims["groups"]
    assert sign_in(flow).groups == set()


def _overflow(endpoint: str, **more: str) -> dict[str, Any]:
    """As Entra writes it where somebody is in more than 200 groups."""
    return {
        "_claim_names": {"groups": "src1"},
        "_claim_sources": {"src1": {"endpoint": endpoint, **more}},
    }


def test_groups_that_do_not_fit_into_the_token_are_fetched(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.groups = [f"group-{number}" for number in range(1_500)]
    provider.claims |= _overflow(f"{provider.issuer}/v1.0/me/getMemberObjects")
    assert sign_in(flow).groups == set(provider.groups)


def test_groups_are_fetched_with_the_token_that_comes_with_their_address(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.access_tokens.add("of the groups alone")
    provider.userinfo = {"groups": ["engineering"]}
    provider.claims |= _overflow(f"{provider.issuer}/userinfo", access_token="of the groups alone")
    assert sign_in(flow).groups == {"engineering"}


def test_a_sign_in_without_the_groups_that_it_should_have_is_refused(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.claims |= _overflow(
        f"{provider.issuer}/v1.0/me/getMemberObjects", access_token="not enough"
    )
    with pytest.raises(SignInRefusedError, match="does not give Quarry access to the groups"):
        sign_in(flow)


def test_the_access_token_is_not_sent_where_others_can_read_it(
    flow: CodeFlow, provider: OpenIdProvider
) -> None:
    provider.claims |= _overflow("http://graph.example.com/v1.0/me/getMemberObjects")
    with pytest.raises(SignInRefusedError, match="not encrypted"):
        sign_in(flow)


@pytest.mark.parametrize("groups", [5, {"a": 1}, [1], ["x"] * 20_001])
def test_what_is_no_list_of_names_is_refused(
    flow: CodeFlow, provider: OpenIdProvider, groups: Any
) -> None:
    provider.userinfo = {"groups": groups}
    with pytest.raises(SignInRefusedError, match="groups"):
        sign_in(flow)
