"""Run several calls side by side, each in a thread of its own, and pass on their events as they come."""

import threading
from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeAlias, TypeVar

from backend.chat.events import SEARCH_ERRORS, ChatEvent
from connectors.errors import QuarryError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

GRACE_SECONDS = 1.0
"""After the deadline, for calls that keep to it by themselves and then return what they have."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

Task: TypeAlias = Callable[[], Generator[ChatEvent, None, T]]
"""Begins a call, which yields events and returns its outcome."""


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """The outcome of a call that failed, or that did not end in time."""

    error: QuarryError | DeadlineExceededError


@dataclass(frozen=True, slots=True)
class _Ended(Generic[K, T]):
    key: K
    outcome: T | TaskFailure


_Arrived: TypeAlias = SimpleQueue[ChatEvent | _Ended[K, T] | None]


def run_concurrently(
    tasks: Mapping[K, Task[T]], deadline: Deadline
) -> Generator[ChatEvent, None, dict[K, T | TaskFailure]]:
    """Run all tasks, and return their outcomes by their keys.

    It ends soon after the deadline, at once where that is cancelled; what then still runs is lost. The threads are
    daemons, and each ends with the deadline of its own call.
    """
    arrived: _Arrived[K, T] = SimpleQueue()
    for key, task in tasks.items():
        threading.Thread(target=_run, args=(key, task, arrived), daemon=True).start()
    outcomes: dict[K, T | TaskFailure] = {}
    limit = Deadline(deadline.at + GRACE_SECONDS, deadline.cancel_token)
    with limit.on_expiry(lambda: arrived.put(None)):
        while len(outcomes) < len(tasks) and (one := arrived.get()) is not None:
            if isinstance(one, _Ended):
                outcomes[one.key] = one.outcome
            else:
                yield one
    return {key: outcomes.get(key) or _timed_out() for key in tasks}


def _run(key: K, task: Task[T], arrived: _Arrived[K, T]) -> None:
    # A mistake in the program ends the thread, which reports it, and is an outcome all the same.
    outcome: T | TaskFailure = _timed_out()
    try:
        outcome = _pass_on(arrived, task())
    except SEARCH_ERRORS as error:
        outcome = TaskFailure(error)
    finally:
        arrived.put(_Ended(key, outcome))


def _pass_on(arrived: _Arrived[K, T], events: Generator[ChatEvent, None, T]) -> T:
    """Put the events of a call where they are waited for, and return its outcome."""
    while True:
        try:
            arrived.put(next(events))
        except StopIteration as end:
            outcome: T = end.value
            return outcome


def _timed_out() -> TaskFailure:
    return TaskFailure(DeadlineExceededError("It took too long."))
