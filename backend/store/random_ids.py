"""Ids of what an address names, where the address must tell nothing and nobody can guess it."""

import secrets

_BYTES = 16


def make_random_id() -> str:
    """Return 128 random bits as 22 characters that an address may contain."""
    return secrets.token_urlsafe(_BYTES)
