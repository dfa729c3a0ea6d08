"""Records which functions of the product a `quarry` command calls, in a process of its own.

    python -m tests.support.call_recorder TARGET COMMAND...

runs the command and writes the recorded names to TARGET as JSON. What `serve` calls is recorded
from SIGUSR1 to SIGUSR2.
"""

import json
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from backend.cli import main as quarry

ROOT = f"{Path(__file__).resolve().parents[2]}/"
PACKAGES = ("backend/", "connectors/", "indexing/")
_OPTIMIZED = 1
"""The code flag of functions, which class bodies lack."""


class Recorder:
    """The functions that are called while it is active, in all threads.

    What runs while a module is imported is left out.
    """

    def __init__(self) -> None:
        self.active = False
        self._called: set[tuple[str, str]] = set()

    def install(self) -> None:
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def start(self) -> None:
        self.active = True

    def write(self, target: Path) -> None:
        """Write the dotted names of the functions, module first."""
        self.active = False
        names = sorted(f"{_module_name(path)}:{name}" for path, name in self._called)
        target.write_text(json.dumps(names), encoding="utf-8")

    def _record(self, frame: FrameType, event: str, argument: object) -> None:
        del argument
        code = frame.f_code
        if event != "call" or not self.active or not _is_of_the_product(code.co_filename):
            return
        called = (code.co_filename, code.co_qualname)
        if called not in self._called and code.co_flags & _OPTIMIZED and not _is_importing(frame):
            self._called.add(called)


def _is_of_the_product(path: str) -> bool:
    return path.startswith(ROOT) and path.removeprefix(ROOT).startswith(PACKAGES)


def _is_importing(frame: FrameType) -> bool:
    caller: FrameType | None = frame
    while caller is not None:
        code = caller.f_code
        if code.co_name == "<module>" and _is_of_the_product(code.co_filename):
            return True
        caller = caller.f_back
    return False


def _module_name(path: str) -> str:
    return path.removeprefix(ROOT).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def record(target: Path, arguments: Sequence[str]) -> None:
    serving = arguments[0] == "serve"
    recorder = Recorder()
    if serving:
        signal.signal(signal.SIGUSR1, lambda *_: recorder.start())
        signal.signal(signal.SIGUSR2, lambda *_: recorder.write(target))
    else:
        recorder.start()
    sys.argv = ["quarry", *arguments]
    recorder.install()
    try:
        quarry()
    finally:
        sys.setprofile(None)
        if not serving:
            recorder.write(target)


if __name__ == "__main__":
    record(Path(sys.argv[1]), sys.argv[2:])
