"""What people and programs prove themselves with: random, and stored only as a hash."""

import hashlib
import secrets

_BYTES = 32


def make_random_secret() -> str:
    """Return 256 random bits as 43 characters that an address or a cookie may contain."""
    return secrets.token_urlsafe(_BYTES)


def digest(secret: str) -> str:
    """Return what is stored. It is random, so that a fast hash without salt cannot be reversed."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
