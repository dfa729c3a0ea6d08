"""The keys with which the provider signs: cached, and fetched again where it signs with another one."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key

from backend.access.openid.errors import SignInRefusedError

LIFETIME = 3600.0
"""Seconds after which a key that the provider withdrew is not trusted any more."""
PAUSE = 60.0
"""Seconds between two requests because of unknown keys: whoever invents keys costs the provider no more."""

_SMALLEST_RSA = 2048


class SigningKeys:
    """Thread-safe.

    Args:
        fetch: returns the JSON Web Key Set of the provider (RFC 7517).
    """

    def __init__(self, fetch: Callable[[], Mapping[str, Any]], clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: tuple[Key, ...] = ()
        self._fetched_at = float("-inf")

    def find(self, key_id: str | None, key_type: str) -> Key:
        """Return the key that a token names.

        Raises:
            SignInRefusedError: the provider has no such key.
            TemporarilyUnavailableError: it does not respond.
        """
        with self._lock:
            for age in (LIFETIME, PAUSE):
                self._fetch_if_older(age)
                if (key := self._select(key_id, key_type)) is not None:
                    return key
        raise SignInRefusedError(
            "The ID token is signed with a key that the provider does not have."
        )

    def find_newer(self, wrong: Key, key_id: str | None, key_type: str) -> Key | None:
        """Return the key that the provider has by now in place of one by which a token cannot be verified, if it has one.

        Some providers name no key in their tokens, or keep the name, so that another key is not known by its id.

        Raises TemporarilyUnavailableError: the provider does not respond.
        """
        with self._lock:
            self._fetch_if_older(PAUSE)
            key = self._select(key_id, key_type)
        return key if key is not None and key.thumbprint() != wrong.thumbprint() else None

    def _fetch_if_older(self, age: float) -> None:
        if self._clock() - self._fetched_at >= age:
            self._keys = tuple(_parse_keys(self._fetch()))
            self._fetched_at = self._clock()

    def _select(self, key_id: str | None, key_type: str) -> Key | None:
        """Return the key of this id; without an id, the key of the type if there is one only."""
        found = [
            key
            for key in self._keys
            if key.key_type == key_type and (key_id is None or key.kid == key_id)
        ]
        return found[0] if len(found) == 1 else None


def _parse_keys(key_set: Mapping[str, Any]) -> Iterator[Key]:
    """Yield the public keys for signatures; pass over those of other kinds, which a later standard may bring."""
    listed = key_set.get("keys")
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and _is_for_signatures(each):
            try:
                yield JWKRegistry.import_key(each)
            except (JoseError, ValueError, TypeError):
                continue


def _is_for_signatures(key: Mapping[str, Any]) -> bool:
    match key:
        case {"kty": "RSA", "n": str(modulus)}:
            # Six bits a character; the library warns of shorter keys, which is not enough.
            return _may_sign(key) and len(modulus.rstrip("=")) * 6 >= _SMALLEST_RSA
        case {"kty": "EC" | "OKP"}:
            return _may_sign(key)
        case _:
            return False


def _may_sign(key: Mapping[str, Any]) -> bool:
    return key.get("use", "sig") == "sig" and "d" not in key
