"""Which of the provider's keys count, and how often they are asked for."""

from typing import Any

import pytest

from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.signing_keys import LIFETIME, PAUSE, SigningKeys
from tests.support.openid_provider import make_key


class KeySet:
    """What a provider shows, and how often it was asked."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys: Any = list(keys)
        self.requests = 0
        self.seconds = 0.0

    def fetch(self) -> dict[str, Any]:
        self.requests += 1
        return {"keys": self.keys}

    def signing_keys(self) -> SigningKeys:
        return SigningKeys(self.fetch, lambda: self.seconds)


def public(name: str, **more: Any) -> dict[str, Any]:
    return {**make_key(name).as_dict(private=False), **more}


def test_an_unknown_key_is_asked_for_once_a_minute() -> None:
    shown = KeySet(public("first"))
    keys = shown.signing_keys()
    for _ in range(5):
        with pytest.raises(SignInRefusedError):
            keys.find("second", "RSA")
    assert shown.requests == 1
    shown.seconds += PAUSE
    shown.keys.append(public("second"))
    assert keys.find("second", "RSA").kid == "second"
    assert keys.find("first", "RSA").kid == "first"
    assert shown.requests == 2


def test_a_key_that_was_withdrawn_is_trusted_no_longer_than_its_lifetime() -> None:
    shown = KeySet(public("first"))
    keys = shown.signing_keys()
    keys.find("first", "RSA")
    shown.keys = [public("second")]
    shown.seconds += LIFETIME - 1
    keys.find("first", "RSA")
    shown.seconds += 1
    with pytest.raises(SignInRefusedError):
        keys.find("first", "RSA")


def test_a_token_without_a_key_id_is_of_the_only_key_of_its_type() -> None:
    shown = KeySet(public("first"), public("ec"))
    assert shown.signing_keys().find(None, "EC").kid == "ec"
    shown.keys.append(public("second"))
    with pytest.raises(SignInRefusedError):
        shown.signing_keys().find(None, "RSA")


@pytest.mark.parametrize(
    "key",
    [
        public("first", use="enc"),
        public("first", n="AQAB"),
        public("first", kty="unheard of"),
        public("first", n=5),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "first"},
        {"kid": "first"},
        make_key("first").as_dict(private=True),
        "first",
    ],
    ids=["encryption", "short", "type", "number", "secret", "empty", "private", "text"],
)
def test_other_keys_are_passed_over(key: Any) -> None:
    shown = KeySet(key, public("second"))
    with pytest.raises(SignInRefusedError):
        shown.signing_keys().find("first", "RSA")
    assert shown.signing_keys().find("second", "RSA").kid == "second"


def test_a_key_is_found_for_its_own_type_alone() -> None:
    with pytest.raises(SignInRefusedError):
        KeySet(public("first")).signing_keys().find("first", "EC")


@pytest.mark.parametrize("keys", [None, "text", 5, {}])
def test_what_is_no_list_of_keys_holds_none(keys: Any) -> None:
    shown = KeySet()
    shown.keys = keys
    with pytest.raises(SignInRefusedError):
        shown.signing_keys().find("first", "RSA")
