"""What went wrong with a source, named by what the caller should do about it."""

from datetime import timedelta


class RetryLater(Exception):
    """The source does not answer now; the same call may succeed later."""

    def __init__(self, message: str, after: timedelta) -> None:
        super().__init__(message)
        self.after = after


class AskTheOwner(Exception):
    """A person must mend something first; the message says what."""
