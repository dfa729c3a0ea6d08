"""What came of a search: the results, and which provider was asked what, answered, or failed why."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from backend.web_search.providers.provider import QuotaExceededError
from backend.web_search.results import WebQuery, WebResult
from connectors.errors import (
    InvalidInputError,
    NotConfiguredError,
    QuarryError,
    SourceAuthError,
    TemporarilyUnavailableError,
)
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.response import RateLimitedError
from indexing.runtime.deadline import DeadlineExceededError


class FailureKind(StrEnum):
    """Why a provider did not answer."""

    CREDENTIAL = "credential"
    """It rejects the key."""
    QUOTA = "quota"
    """The plan of the account is used up."""
    RATE_LIMIT = "rate limit"
    """It asks to wait, or the limit that is set here is reached."""
    TOO_SLOW = "too slow"
    UNAVAILABLE = "unavailable"
    SETTINGS = "settings"
    """Its settings, its address or an extra of this installation are wrong."""
    UNUSABLE = "unusable"
    """It answers in a way that cannot be used."""
    NOTHING_FOUND = "nothing found"


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    kind: FailureKind
    reason: str
    """A sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAttempt:
    """How one provider was asked.

    Attributes:
        service: The name of its kind, such as Tavily.
        receiver: Whom the query was sent to, such as a host.
        sent: The query as it was sent; None where none was.
        found: The number of results that may be shown.
    """

    provider: str
    service: str
    receiver: str
    sent: WebQuery | None
    found: int
    failure: ProviderFailure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOutcome:
    """The results of the provider that answered, and the attempts in their order."""

    results: tuple[WebResult, ...]
    attempts: tuple[ProviderAttempt, ...]

    @property
    def answered_by(self) -> str | None:
        """The name of the provider whose results these are; None where there are none."""
        return next((one.provider for one in self.attempts if one.failure is None), None)


LONGEST_LIMIT = timedelta(hours=1)
"""A provider that asks for a longer wait than this has a quota that is used up."""
NOTHING_FOUND = ProviderFailure(FailureKind.NOTHING_FOUND, "It found nothing.")
_TOO_SLOW = ProviderFailure(FailureKind.TOO_SLOW, "It did not answer in time.")


def describe_failure(
    error: QuarryError | DeadlineExceededError, *, is_late: bool
) -> ProviderFailure:
    """Return the failure that an error of a provider means.

    Args:
        is_late: whether the time that it had is up.
    """
    match error:
        case DeadlineExceededError():
            return _TOO_SLOW
        case QuotaExceededError():
            kind = FailureKind.QUOTA
        case RateLimitedError() if error.retry_after > LONGEST_LIMIT:
            kind = FailureKind.QUOTA
        case RateLimitedError():
            kind = FailureKind.RATE_LIMIT
        case TemporarilyUnavailableError() if is_late:
            return _TOO_SLOW
        case TemporarilyUnavailableError():
            kind = FailureKind.UNAVAILABLE
        case SourceAuthError():
            kind = FailureKind.CREDENTIAL
        case InvalidInputError() | NotConfiguredError() | AddressNotAllowedError():
            kind = FailureKind.SETTINGS
        case _:
            kind = FailureKind.UNUSABLE
    return ProviderFailure(kind, _to_sentence(str(error)))


def _to_sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
