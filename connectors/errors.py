"""Errors of the product, sorted by what the caller can do about them.

Catch `TemporarilyUnavailableError` to try again and `ActionRequiredError` to report to a person; a `HandledError` is
caught by class, next to the call that raises it. Raise the most specific class. Each message says what happened and
what to do next; where somebody else has written it, `advice` says the latter.
"""

from datetime import timedelta


class QuarryError(Exception):
    """The base of all errors that the product expects. Derive from one of the three below.

    Attributes:
        advice: what to do next, unless the message says it.
    """

    def __init__(self, message: str = "", advice: str | None = None) -> None:
        super().__init__(message)
        self.advice = advice


class TemporarilyUnavailableError(QuarryError):
    """The same call may succeed later, at the earliest after `retry_after`."""

    def __init__(self, message: str, retry_after: timedelta, advice: str | None = None) -> None:
        super().__init__(message, advice)
        self.retry_after = retry_after


class ActionRequiredError(QuarryError):
    """A person must change something before the call can succeed. Raise a subclass."""


class HandledError(QuarryError):
    """A part of the work failed, and the caller goes on without it or ends in an orderly way. Raise a subclass.

    It reaches neither clients nor the command line: it has no status, and its text may hold what is for the log alone.
    """


class NotFoundError(ActionRequiredError):
    """What was asked for does not exist, or the asker may not see it."""


class ConflictError(ActionRequiredError):
    """The present state does not allow it: already exists, in use, paused, running."""


class NotAllowedError(ActionRequiredError):
    """The asker knows of what this is about, but may not do this with it. Raise a subclass."""


class InvalidInputError(ActionRequiredError):
    """What the caller gave is not valid."""


class NotConfiguredError(ActionRequiredError):
    """A setting, a key, a model or an extra is missing or wrong on this installation."""


class SourceAuthError(ActionRequiredError):
    """A source does not accept the credential, or the credential may not do this."""


class SourceError(ActionRequiredError):
    """A source or service answered in a way that trying again does not mend."""


class DamagedDataError(ActionRequiredError):
    """A file, a database or an index of this installation is damaged or of another version."""
