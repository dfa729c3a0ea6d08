"""By when an answer is wanted."""

import time
from dataclasses import dataclass


class DeadlineExceeded(TimeoutError):
    """The time for this was up."""


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float
    """Seconds of `time.monotonic`."""

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds that are left, never below zero."""
        return max(0.0, self.at - time.monotonic())

    def earlier(self, seconds: float) -> "Deadline":
        """This one, or `seconds` from now, whichever comes first."""
        return Deadline(min(self.at, time.monotonic() + seconds))

    def check(self) -> None:
        """Raises DeadlineExceeded when the time is up."""
        if time.monotonic() >= self.at:
            raise DeadlineExceeded(DeadlineExceeded.__doc__)
