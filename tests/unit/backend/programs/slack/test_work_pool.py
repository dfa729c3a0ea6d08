"""The threads of the bot: bounded, and nothing that was taken is lost without a word."""

import logging
import threading

import pytest

from backend.programs.slack.work_pool import MOST_WAITING_OF_ONE, WAITING_FOR_EACH, Job, WorkPool

SOON = 30.0


def ignore() -> None:
    """Do nothing."""


def break_down() -> None:
    raise ZeroDivisionError


def test_more_than_can_wait_is_refused_and_what_waits_is_abandoned_at_the_end() -> None:
    pool, may_end, begun = WorkPool(1), threading.Event(), threading.Event()
    done: list[int] = []
    abandoned: list[int] = []

    def work(number: int) -> None:
        begun.set()
        assert may_end.wait(SOON)
        done.append(number)

    def submit(number: int) -> bool:
        return pool.submit(
            Job("U1", lambda: work(number), ignore, lambda: abandoned.append(number))
        )

    assert submit(0)
    assert begun.wait(SOON)
    assert [submit(number) for number in range(1, WAITING_FOR_EACH + 2)] == [
        *[True] * WAITING_FOR_EACH,
        False,
    ]
    pool.stop()
    assert not submit(99)
    assert not pool.wait(0.01)
    may_end.set()
    assert pool.wait(SOON)
    assert (done, abandoned) == ([0], list(range(1, WAITING_FOR_EACH + 1)))


def test_nobody_takes_all_places() -> None:
    pool, may_end, begun = WorkPool(2), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(SOON)

    for _ in range(2):
        begun.clear()
        assert pool.submit(Job("U1", work, ignore, ignore))
        assert begun.wait(SOON)
    submitted = [pool.submit(Job("U1", ignore, ignore, ignore)) for _ in range(7)]
    assert submitted == [*[True] * MOST_WAITING_OF_ONE, False, False]
    assert pool.submit(Job("U2", ignore, ignore, ignore))
    may_end.set()
    assert pool.wait(SOON)
    pool.stop()


def test_an_error_in_the_program_is_said_and_the_thread_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool, failed, went_on = WorkPool(1), threading.Event(), threading.Event()
    with caplog.at_level(logging.ERROR):
        assert pool.submit(Job("U1", break_down, failed.set, ignore))
        assert pool.submit(Job("U1", break_down, break_down, ignore))
        assert pool.submit(Job("U1", went_on.set, ignore, ignore))
        assert failed.wait(SOON)
        assert went_on.wait(SOON)
    assert caplog.text.count("Work for Slack failed.") == 3
    pool.stop()
