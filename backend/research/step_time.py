"""The time and tokens of one step of a run, by what the steps before have spent."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from backend.research.dependencies import ResearchControl, ResearchInterruptedError
from backend.research.record.budget import Spent
from backend.research.record.research_record import ResearchRecord
from indexing.runtime.deadline import CancelToken, Deadline

LEAST_SECONDS = 20.0
"""For the report, whatever was spent before."""


class StepTime:
    """Measures from when it is made."""

    def __init__(self, record: ResearchRecord, control: ResearchControl) -> None:
        self._before = record.spent
        self._started = time.monotonic()
        self._control = control
        self.left = record.request.budget.left_after(record.spent)

    @property
    def tokens_left(self) -> int:
        return self.left.tokens

    def deadline(self, seconds: float) -> Deadline:
        """Return a deadline for a call of this step, which an interruption ends sooner."""
        return Deadline.after(min(seconds, self.left.seconds), self._control.interrupt)

    def finish(self, record: ResearchRecord, tokens: int = 0) -> ResearchRecord:
        """Return a record with what the step has spent.

        Raises:
            ResearchInterruptedError: what a step comes to that was interrupted is not kept.
        """
        check_interrupted(self._control)
        measured = self.measure(record)
        return replace(measured, spent=measured.spent + Spent(tokens=tokens))

    def measure(self, record: ResearchRecord) -> ResearchRecord:
        """Return a record with the time that has passed until now."""
        seconds = self._before.seconds + time.monotonic() - self._started
        return replace(record, spent=replace(record.spent, seconds=seconds))


def check_interrupted(control: ResearchControl) -> None:
    if control.interrupt.is_cancelled:
        raise ResearchInterruptedError("The run was interrupted. It goes on later.")


@contextmanager
def ended_by(*tokens: CancelToken) -> Iterator[CancelToken]:
    """Yield a token that is cancelled with the first of these, and with the block."""
    ended = CancelToken()
    with ExitStack() as stack:
        for one in tokens:
            stack.enter_context(one.on_cancel(ended.cancel))
        stack.callback(ended.cancel)
        yield ended
