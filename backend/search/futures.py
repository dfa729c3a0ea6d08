"""A call that runs beside the caller, who waits for it no longer than until a deadline."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from backend.search.llm_protocol import CompletionFailed
from indexing.runtime.deadline import Deadline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """A result that is on its way."""

    future: Future[T]
    deadline: Deadline

    def result(self) -> T:
        """Wait for it. Raises CompletionFailed: the call failed, or the time is up."""
        try:
            return self.future.result(self.deadline.remaining())
        except TimeoutError as error:
            raise CompletionFailed("the language model did not answer in time") from error


def in_background(call: Callable[[], T], deadline: Deadline) -> Pending[T]:
    """Start `call` in a thread of its own.

    The thread is a daemon and belongs to no pool: a call that never returns holds up neither the
    caller nor the end of the process.
    """
    future: Future[T] = Future()
    threading.Thread(target=_fulfil, args=(future, call), daemon=True).start()
    return Pending(future, deadline)


def _fulfil(future: Future[T], call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except (CompletionFailed, TimeoutError) as failure:
        future.set_exception(failure)
    finally:
        # Any other error is a mistake in the program: the thread reports it, nobody waits in vain.
        if not future.done():
            future.set_exception(CompletionFailed("the call ended without an answer"))
