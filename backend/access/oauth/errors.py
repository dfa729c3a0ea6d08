"""Refusals in the words of OAuth, which programs read."""

from enum import StrEnum


class OAuthErrorCode(StrEnum):
    """The codes of RFC 6749 (4.1.2.1, 5.2), RFC 7591 (3.2.2) and RFC 8707 (2)."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    INVALID_REDIRECT_URI = "invalid_redirect_uri"
    INVALID_CLIENT_METADATA = "invalid_client_metadata"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"
    ACCESS_DENIED = "access_denied"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"


class OAuthError(Exception):
    """A request of a program is refused.

    The description has the characters that RFC 6749 allows: printable ASCII without quotes and backslashes.
    """

    def __init__(self, code: OAuthErrorCode, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
