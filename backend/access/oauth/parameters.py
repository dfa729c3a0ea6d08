"""The parameters of a request of OAuth: each at most once (RFC 6749, 3.1 and 3.2)."""

from collections.abc import Sequence
from typing import TypeAlias

from backend.access.oauth.errors import OAuthError, OAuthErrorCode

Fields: TypeAlias = Sequence[tuple[str, str]]
"""Names and values in the order in which they were sent."""


def find_parameter(fields: Fields, name: str) -> str | None:
    """Return the value of a parameter; None where it is missing or empty, which is the same.

    Raises:
        OAuthError: invalid_request, it is there more than once.
    """
    values = [value for key, value in fields if key == name]
    if len(values) > 1:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, f"{name} is given more than once.")
    return values[0] if values and values[0] else None


def get_parameter(fields: Fields, name: str) -> str:
    """Return the value of a parameter that has to be there.

    Raises:
        OAuthError: invalid_request, it is missing, or there more than once.
    """
    found = find_parameter(fields, name)
    if found is None:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, f"{name} is missing.")
    return found


def list_values(fields: Fields, name: str) -> list[str]:
    """Return all values of a parameter that may be there several times (RFC 8707, 2)."""
    return [value for key, value in fields if key == name and value]
