"""Run a call beside the caller, who waits for its result until a deadline at most."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from backend.search.llm_protocol import CompletionError
from indexing.runtime.deadline import Deadline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PendingCompletion(Generic[T]):
    future: Future[T]
    deadline: Deadline

    def result(self) -> T:
        """Wait for the result. Raises CompletionError: the call failed, or the time is up."""
        try:
            return self.future.result(self.deadline.remaining())
        except TimeoutError as error:
            raise CompletionError("it did not end in time") from error


def run_in_background(call: Callable[[], T], deadline: Deadline) -> PendingCompletion[T]:
    """Start `call` in a thread of its own.

    The thread is a daemon and belongs to no pool: a call that never returns holds up neither the
    caller nor the end of the process.
    """
    future: Future[T] = Future()
    threading.Thread(target=_resolve, args=(future, call), daemon=True).start()
    return PendingCompletion(future, deadline)


def _resolve(future: Future[T], call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except (CompletionError, TimeoutError) as error:
        future.set_exception(error)
    finally:
        # Any other error is a mistake in the program: the thread reports it, and the caller, who
        # would wait in vain, gets an error as well.
        if not future.done():
            future.set_exception(CompletionError("the call ended without an answer"))
