"""Errors of the product, sorted by what the caller can do about them.

Catch `TemporarilyUnavailableError` to try again and `ActionRequiredError` to report to a person;
raise the most specific class. Each message says what happened and what to do next.
"""

from datetime import timedelta


class QuarryError(Exception):
    """The base of all errors that the product expects."""


class TemporarilyUnavailableError(QuarryError):
    """The same call may succeed later, at the earliest after `retry_after`."""

    def __init__(self, message: str, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ActionRequiredError(QuarryError):
    """A person must change something before the call can succeed. Raise a subclass."""


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
