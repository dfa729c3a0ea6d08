"""Proof Key for Code Exchange (RFC 7636): who ends a flow of OAuth is who began it."""

import base64
import hashlib


def make_challenge(verifier: str) -> str:
    """Return the challenge of a verifier by the method S256 (RFC 7636, 4.2)."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
