"""Calls beside the caller: waited for until a deadline, and never in the way."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from backend.search.futures import run_in_background
from backend.search.llm_protocol import CompletionError
from indexing.runtime.deadline import Deadline

ROOT = Path(__file__).resolve().parents[4]


def test_a_result_arrives() -> None:
    assert run_in_background(lambda: 6 * 7, Deadline.after(10)).result() == 42


def test_a_failure_arrives() -> None:
    def fail() -> str:
        raise CompletionError("the endpoint answered 429")

    with pytest.raises(CompletionError, match="429"):
        run_in_background(fail, Deadline.after(10)).result()


def test_a_call_that_hangs_is_left_at_the_deadline() -> None:
    released = threading.Event()
    began = time.monotonic()
    with pytest.raises(CompletionError, match=r"^it did not end in time$"):
        run_in_background(released.wait, Deadline.after(0.05)).result()
    assert time.monotonic() - began < 5
    released.set()


def test_a_mistake_in_the_program_is_reported_and_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(str(args.exc_value)))

    def mistaken() -> str:
        raise ZeroDivisionError("a mistake")

    began = time.monotonic()
    with pytest.raises(CompletionError, match="without an answer"):
        run_in_background(mistaken, Deadline.after(60)).result()
    assert time.monotonic() - began < 10
    for _ in range(500):
        if reported:
            break
        time.sleep(0.01)
    assert reported == ["a mistake"]


def test_a_call_that_hangs_does_not_keep_the_process() -> None:
    program = (
        "import time\n"
        "from backend.search.futures import run_in_background\n"
        "from indexing.runtime.deadline import Deadline\n"
        "run_in_background(lambda: time.sleep(600), Deadline.after(600))\n"
        "print('left')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == "left\n"
