"""Run Python code of a language model in the sandbox, and say what came of it."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from backend.research.calculations.preparation import (
    find_compiled,
    forget_component,
    prepare_component,
)
from backend.research.calculations.process_protocol import LOAD_FAILED, MOST_OUTPUT
from connectors.errors import NotConfiguredError
from indexing.runtime.deadline import Deadline

LONGEST_CODE = 50_000
"""Characters."""
LONGEST_RUN = 20.0
"""Seconds, however long the deadline is; of them at most 10 of the processor."""
_PROGRAM = "from backend.research.calculations.sandbox_process import run_standard_input; run_standard_input()"
_PROCESSES = threading.BoundedSemaphore(2)
_LATE = "it takes too long"
_BROKEN = "the sandbox ended without an answer: it took too much memory or processor time"


@dataclass(frozen=True, slots=True)
class Calculation:
    code: str
    output: str
    """What it printed, and the value of its last line."""
    at: datetime
    """When it was run; its clocks showed this time."""


@dataclass(frozen=True, slots=True)
class FailedCalculation:
    code: str
    reason: str
    """For people and for the model: the error of Python with its line, or which limit it met."""
    output: str = ""
    """What it printed before."""


CalculationOutcome: TypeAlias = Calculation | FailedCalculation


@dataclass(frozen=True, slots=True)
class CalculationSandbox:
    """Runs code that may be hostile; where it cannot, it says why.

    Attributes:
        folder: Of the compiled component; nobody else may write to it.
    """

    folder: Path

    def find_obstacle(self) -> str | None:
        """Say why there are no calculations here; None where there are, or will be once the component is built."""
        try:
            find_compiled(self.folder)
        except NotConfiguredError as error:
            return str(error)
        return None

    @property
    def is_prepared(self) -> bool:
        """Whether the component is compiled. Raises NotConfiguredError: there is no sandbox."""
        return find_compiled(self.folder) is not None

    def run_calculation(self, code: str, deadline: Deadline) -> CalculationOutcome:
        """Run code once, in a fresh sandbox of which nothing is kept.

        Raises:
            NotConfiguredError: there is no sandbox; see `find_obstacle`.
        """
        if len(code) > LONGEST_CODE:
            return FailedCalculation(code, f"it is longer than {LONGEST_CODE:,} characters")
        compiled = prepare_component(self.folder, deadline)
        if compiled is None:
            return FailedCalculation(code, "the sandbox is still being prepared")
        limit = deadline.limited_to(LONGEST_RUN)
        if not _PROCESSES.acquire(timeout=limit.remaining()):
            return FailedCalculation(code, _LATE)
        try:
            return self._run(compiled, code, limit)
        finally:
            _PROCESSES.release()

    def _run(self, compiled: Path, code: str, deadline: Deadline) -> CalculationOutcome:
        at = datetime.now(UTC)
        status, written = _run_process([str(compiled), str(at.timestamp())], code, deadline)
        if status == LOAD_FAILED:
            forget_component(self.folder)
            return FailedCalculation(
                code, "the sandbox does not fit this machine; it is built anew"
            )
        if status:
            return FailedCalculation(code, _BROKEN if deadline.remaining() else _LATE)
        said = json.loads(written)
        output = _shorten(said["output"])
        if said["problem"]:
            return FailedCalculation(code, said["problem"], output)
        return Calculation(code, output, at)


def _run_process(arguments: list[str], code: str, deadline: Deadline) -> tuple[int, bytes]:
    """Return the exit status of the process and what it wrote; it is killed at the deadline."""
    command = [sys.executable, "-P", "-c", _PROGRAM, *arguments]
    # No variables of this process: they may contain keys.
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        subprocess.Popen(
            command,
            env=environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
        deadline.on_expiry(process.kill),
    ):
        written, _ = process.communicate(code.encode("utf-8", "replace"))
    return process.returncode, written


def _shorten(output: str) -> str:
    return output if len(output) <= MOST_OUTPUT else f"{output[:MOST_OUTPUT]}…"
