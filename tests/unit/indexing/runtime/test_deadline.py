"""Deadlines and cancellation."""

import threading
import time

import pytest

from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError


def test_cancelling_ends_every_deadline_with_the_token() -> None:
    cancel_token = CancelToken()
    deadline = Deadline.after(60, cancel_token)
    part = deadline.limited_to(30)
    assert 29 < part.remaining() <= 30
    cancel_token.cancel()
    assert (deadline.remaining(), part.remaining()) == (0, 0)
    with pytest.raises(DeadlineExceededError):
        part.check()


def test_each_check_of_a_deadline_and_of_its_parts_calls_what_may_wait_first() -> None:
    calls = list[str]()
    deadline = Deadline.after(60, CancelToken()).with_check_hook(lambda: calls.append("check"))
    assert deadline.remaining() > 0
    assert calls == []
    with deadline.ended_with_block() as block:
        for part in (deadline, deadline.limited_to(30), deadline.restarted(30), block):
            part.check()
    assert calls == ["check"] * 4


def test_a_renewed_deadline_has_its_own_time_and_ends_with_the_same_token() -> None:
    cancel_token = CancelToken()
    over = Deadline.after(0, cancel_token)
    renewed = over.restarted(30)
    assert (over.remaining(), 29 < renewed.remaining() <= 30) == (0, True)
    cancel_token.cancel()
    assert renewed.remaining() == 0


def test_cancelling_ends_a_sleep() -> None:
    cancel_token = CancelToken()
    threading.Timer(0.05, cancel_token.cancel).start()
    began = time.monotonic()
    Deadline.after(60, cancel_token).sleep(30)
    assert time.monotonic() - began < 10


def test_sleep_ends_at_the_deadline() -> None:
    began = time.monotonic()
    Deadline.after(0.05).sleep(30)
    Deadline.after(60).sleep(0.01)
    assert time.monotonic() - began < 10


def test_a_callback_is_called_once() -> None:
    cancel_token, called = CancelToken(), list[str]()
    with cancel_token.on_cancel(lambda: called.append("inside")):
        cancel_token.cancel()
        cancel_token.cancel()
    assert called == ["inside"]


def test_a_callback_registered_after_cancelling_is_called_at_once() -> None:
    cancel_token, called = CancelToken(), list[str]()
    cancel_token.cancel()
    with cancel_token.on_cancel(lambda: called.append("late")):
        assert called == ["late"]


def test_no_callback_is_called_after_the_block() -> None:
    cancel_token, called = CancelToken(), list[str]()
    with cancel_token.on_cancel(lambda: called.append("stop")):
        pass
    with Deadline.after(0.05).on_expiry(lambda: called.append("time")):
        pass
    cancel_token.cancel()
    time.sleep(0.1)
    assert called == []


@pytest.mark.parametrize("cancel_token", [CancelToken(), None])
def test_expiry_calls_back(cancel_token: CancelToken | None) -> None:
    over = threading.Event()
    with Deadline.after(0.02, cancel_token).on_expiry(over.set):
        assert over.wait(10)


def test_cancelling_calls_back_before_expiry() -> None:
    cancel_token, over = CancelToken(), threading.Event()
    with Deadline.after(60, cancel_token).on_expiry(over.set):
        cancel_token.cancel()
        assert over.is_set()


def test_what_a_block_starts_ends_with_it() -> None:
    with Deadline.after(60).ended_with_block() as deadline:
        assert deadline.remaining() > 50
    assert deadline.remaining() == 0


def test_what_a_block_starts_ends_with_the_deadline_around_it() -> None:
    cancel_token = CancelToken()
    outer = Deadline.after(60, cancel_token)
    with outer.ended_with_block() as deadline:
        assert deadline.at == outer.at
        cancel_token.cancel()
        assert deadline.remaining() == 0
    other = CancelToken()
    with Deadline.after(60, other).ended_with_block():
        pass
    assert not other.is_cancelled
