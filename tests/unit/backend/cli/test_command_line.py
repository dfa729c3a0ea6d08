"""Ctrl-C, pressed before real processes."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.cli.command_line import end_promptly

PROGRAM = """
import sys, threading, time
import rich.console  # so that nothing but the thread holds up the end
from backend.cli import command_line
from backend.cli.command_line import cli_errors

command_line.GRACE_SECONDS = {grace}
with cli_errors(as_json={as_json}):
    {before}
    print("ready", flush=True)
    time.sleep(60)
"""
UNHURRIED = 60.0
"""Seconds: a busy machine too comes to say that the command has stopped."""
BUSY = """try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(60)"""
THREAD = "threading.Thread(target=time.sleep, args=(60,)).start()"
SLOW_OUTPUT = """console = command_line.console
    command_line.console = lambda stream: time.sleep(2) or console(stream)
    """


@contextmanager
def started(
    before: str = "", *, as_json: bool = False, grace: float = UNHURRIED
) -> Iterator[subprocess.Popen[str]]:
    program = PROGRAM.format(before=before or "pass", as_json=as_json, grace=grace)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[4],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _press(process: subprocess.Popen[str]) -> float:
    """Press Ctrl-C, and return the seconds until it is said that the command stops."""
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert process.stderr.readline() == "Stopping…\n"
    return time.monotonic() - began


def _read_to_end(process: subprocess.Popen[str]) -> str:
    """Return what is still printed. `communicate` would miss what came together with the line that was read."""
    assert process.stderr
    output = process.stderr.read()
    process.wait(30)
    return output


def test_a_command_says_at_once_that_it_stops_and_ends() -> None:
    with started() as process:
        _press(process)
        output = _read_to_end(process)
        assert (process.returncode, output.startswith("Stopped.")) == (1, True)


def test_a_thread_that_goes_on_holds_up_the_end_for_seconds_only() -> None:
    with started(THREAD, grace=3) as process:
        _press(process)
        output = _read_to_end(process)
        assert (process.returncode, output.count("Stopped.")) == (1, 1)


def test_it_does_not_end_before_it_is_said_that_it_has_stopped() -> None:
    with started(SLOW_OUTPUT + THREAD, grace=0.2) as process:
        _press(process)
        output = _read_to_end(process)
        assert (process.returncode, output.count("Stopped.")) == (1, 1)


def test_pressed_again_it_ends_at_once() -> None:
    with started(THREAD) as process:
        _press(process)
        assert process.stderr
        assert process.stderr.readline().startswith("Stopped.")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 1


def test_a_block_that_cannot_be_left_is_ended_and_that_is_said() -> None:
    with started(BUSY, grace=2) as process:
        _press(process)
        output = _read_to_end(process)
        assert (process.returncode, output.count("Stopped.")) == (1, 1)


def test_in_json_mode_the_answer_is_json_alone() -> None:
    with started(as_json=True) as process:
        _press(process)
        output, _ = process.communicate(timeout=30)
        assert output.startswith('{\n  "error": "Stopped.')


def test_outside_the_block_ctrl_c_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with end_promptly(lambda: None, 1):
        assert signal.getsignal(signal.SIGINT) is not before
        with end_promptly(lambda: None, 1):
            pass
    assert signal.getsignal(signal.SIGINT) is before
