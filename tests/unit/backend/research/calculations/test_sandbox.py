"""What calculations yield, and what they cannot reach: each escape is tried in the sandbox itself."""

import os
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from wasmtime.component import Component

from backend.research.calculations import preparation, sandbox
from backend.research.calculations.preparation import find_compiled, prepare_component
from backend.research.calculations.process_protocol import MOST_OUTPUT
from backend.research.calculations.sandbox import (
    LONGEST_CODE,
    Calculation,
    CalculationSandbox,
    FailedCalculation,
)
from backend.research.calculations.sandbox_process import make_engine
from connectors.errors import NotConfiguredError
from indexing.runtime.deadline import CancelToken, Deadline
from tests.support.calculations import FOLDER, prepared_sandbox

pytestmark = pytest.mark.soak("slow")

SECRET = "the-key-of-the-house"
NOTHING_THERE = "asks for what a calculation has not"
SECONDS = 60.0


def run(code: str, seconds: float = SECONDS) -> Calculation | FailedCalculation:
    return prepared_sandbox().run_calculation(code, Deadline.after(seconds))


def calculate(code: str) -> str:
    outcome = run(code)
    assert isinstance(outcome, Calculation), outcome
    return outcome.output


def fail(code: str, seconds: float = SECONDS) -> FailedCalculation:
    outcome = run(code, seconds)
    assert isinstance(outcome, FailedCalculation), outcome
    return outcome


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("6 * 7", "42\n"),
        ("print(2 ** 100)", "1267650600228229401496703205376\n"),
        ("from decimal import Decimal\nDecimal('0.1') + Decimal('0.2')", "0.3\n"),
        ("import statistics\nstatistics.stdev([2, 4, 4, 4, 5, 5, 7, 9])", "2.138089935299395\n"),
        ("from datetime import date\n(date(2024, 3, 1) - date(2024, 2, 1)).days", "29\n"),
        ("import re\nprint('ü', re.findall('\\d+', 'a1b22'))", "ü ['1', '22']\n"),
        ("def f(n):\n    return n and n + f(n - 1)\nf(100)", "5050\n"),
        ("x = 1", ""),
        ("", ""),
        ("print('\\ud800')", "?\n"),
        ("print('done')\nraise SystemExit", "done\n"),
    ],
)
def test_what_code_writes_is_what_it_yields(code: str, output: str) -> None:
    assert calculate(code) == output


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1\n1 / 0", "ZeroDivisionError: division by zero (line 2)"),
        ("print(", "SyntaxError: '(' was never closed (line 1)"),
        ("\0", "SyntaxError: source code string cannot contain null bytes"),
        ("import numpy", "ModuleNotFoundError: No module named 'numpy' (line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1)"),
        ("#" * (LONGEST_CODE + 1), f"it is longer than {LONGEST_CODE:,} characters"),
    ],
)
def test_why_code_fails_is_said_with_its_line(code: str, reason: str) -> None:
    assert fail(code).reason == reason


def test_what_was_written_before_an_error_is_kept() -> None:
    code = "print('first')\nimport traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\nraise KeyError('k')"
    failed = fail(code)
    assert failed.reason == "KeyError: 'k' (line 7)"
    assert failed.output.startswith("first\n")
    assert "ZeroDivisionError: division by zero" in failed.output


def test_its_clocks_stand_at_the_time_of_the_run() -> None:
    before = datetime.now(UTC)
    outcome = run(
        "import time, datetime\ntime.sleep(3600)\nprint(time.time())\nprint(datetime.datetime.now())"
    )
    assert isinstance(outcome, Calculation)
    assert before <= outcome.at <= datetime.now(UTC)
    seconds, date = outcome.output.splitlines()
    assert float(seconds) == pytest.approx(outcome.at.timestamp())
    assert datetime.fromisoformat(date).replace(tzinfo=UTC) == outcome.at


def test_the_component_imports_nothing() -> None:
    compiled, engine = find_compiled(prepared_sandbox().folder), make_engine()
    assert compiled is not None
    assert list(Component.deserialize_file(engine, str(compiled)).type.imports(engine)) == []


OPEN_ANYWAY = "import _io\nprint(_io.FileIO({path!r}, {mode!r}).{call})"
ESCAPES = {
    "read a file": ("open({secret!r}).read()", "a calculation has no files"),
    "read a file below Python": (
        OPEN_ANYWAY.format(path="/etc/passwd", mode="r", call="read()"),
        NOTHING_THERE,
    ),
    "find a file class among all classes": (
        "[c for c in object.__subclasses__()[0].__class__.__base__.__subclasses__()]\n"
        "import _io\n"
        "found = next(c for c in _io._RawIOBase.__subclasses__() if c.__name__ == 'FileIO')\n"
        "found('/etc/passwd').read()",
        NOTHING_THERE,
    ),
    "open with the loader of modules": (
        "import _imp, _io\n_io.open_code({secret!r}).read()",
        NOTHING_THERE,
    ),
    "read of other processes": (
        OPEN_ANYWAY.format(path="/proc/self/environ", mode="r", call="read()"),
        NOTHING_THERE,
    ),
    "write a file": (
        OPEN_ANYWAY.format(path="/tmp/escaped", mode="w", call="write(b'x')"),
        NOTHING_THERE,
    ),
    "fill the disk": (
        "import _io\nfile = _io.FileIO('/dev/shm/escaped', 'w')\nwhile True: file.write(bytes(1 << 20))",
        NOTHING_THERE,
    ),
    "make a link": ("import os\nos.symlink('/etc', '/tmp/escaped')", NOTHING_THERE),
    "go on in a folder above": ("import os\nos.chdir('..')", NOTHING_THERE),
    "use an open descriptor": (
        "import os\nfor number in range(3, 64): print(os.read(number, 100))",
        "Bad file descriptor",
    ),
    "read standard input": ("import os\nos.read(0, 100)", NOTHING_THERE),
    "write to standard output": ("import os\nos.write(1, b'{{}}')", NOTHING_THERE),
    "start a process": ("import os\nos.system('id')", "AttributeError"),
    "become another program": ("import os\nos.execv('/bin/sh', ['sh'])", "AttributeError"),
    "fork without end": ("import os\nwhile True: os.fork()", "AttributeError"),
    "end another process": ("import os\nos.kill(os.getppid(), 9)", "AttributeError"),
    "trace another process": (
        "import ctypes\nctypes.CDLL(None).ptrace(16, 1, 0, 0)",
        "ModuleNotFoundError",
    ),
    "start a thread": (
        "import _thread\n_thread.start_new_thread(print, ())",
        "can't start new thread",
    ),
    "connect": (
        "import socket\nsocket.create_connection(('127.0.0.1', 80))",
        "ModuleNotFoundError",
    ),
    "connect below Python": ("import _socket\n_socket.socket().connect(('127.0.0.1', 80))", ""),
    "load a page": ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1')", "Module"),
    "import from the disk": (
        "import sys\nsys.path.append('/usr/lib/python3')\nimport apt",
        "ModuleNotFoundError",
    ),
    "use the real import of files": (
        "import importlib._bootstrap_external as outer\nouter.SourceFileLoader('m', {secret!r}).get_data({secret!r})",
        "",
    ),
    "take all memory": ("[bytearray(1 << 20) for _ in range(4096)]", "MemoryError"),
    "take all memory at once": ("bytearray(1 << 40)", ""),
    "call itself without end": ("def f():\n    return f()\nf()", "RecursionError"),
    "call itself beyond the stack": (
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f():\n    return f()\nf()",
        "",
    ),
    "nest brackets": ("eval('(' * 40_000)", ""),
    "break the interpreter": (
        "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes([100, 255] * 50), co_stacksize=0)\nf()",
        "",
    ),
    "end the process": ("import os\nos._exit(0)", NOTHING_THERE),
    "crash": ("import os\nos.abort()", NOTHING_THERE),
    "draw from the machine's random numbers": ("import os\nos.urandom(16)", NOTHING_THERE),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "quarry.db"
    secret.write_text(SECRET)
    monkeypatch.setenv("QUARRY_LLM_API_KEY", SECRET)
    code, reason = ESCAPES[name]
    failed = fail(code.replace("{secret!r}", repr(str(secret))))
    assert reason in failed.reason
    assert SECRET not in failed.output + failed.reason
    assert "root:" not in failed.output + failed.reason
    assert not any(Path(folder, "escaped").exists() for folder in ("/tmp", "/dev/shm", "/"))
    assert calculate("1 + 1") == "2\n", "the next one is not affected"


@pytest.mark.parametrize(
    "code", ["while True: pass", "10 ** 10 ** 9", "import re\nre.match('(a+)+$', 'a' * 99 + 'b')"]
)
def test_what_does_not_end_is_ended(code: str) -> None:
    begin = time.monotonic()
    assert fail(code, 2.0).reason == "it takes too long"
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    ("limit", "code", "reason"),
    [
        ("CPU_SECONDS = 1", "while True: pass", "processor time"),
        ("PROCESS_BYTES = 150 << 20", "x = bytes(200 << 20)", "MemoryError"),
    ],
)
def test_the_process_has_limits_of_its_own(
    limit: str, code: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"from backend.research.calculations import sandbox_process as process; process.{limit}; process.run_standard_input()"
    monkeypatch.setattr(sandbox, "_PROGRAM", program)
    monkeypatch.setattr(sandbox, "LONGEST_RUN", 300.0)
    assert reason in fail(code, 300.0).reason


def test_a_question_that_is_given_up_ends_its_calculation() -> None:
    token = CancelToken()
    with Deadline.after(1).on_expiry(token.cancel):
        outcome = prepared_sandbox().run_calculation("while True: pass", Deadline.after(600, token))
    assert outcome == FailedCalculation("while True: pass", "it takes too long")


def test_long_output_is_cut() -> None:
    assert calculate("print('a' * 10_000_000)") == "a" * MOST_OUTPUT + "…"
    assert calculate(f"print('a' * {MOST_OUTPUT - 1})") == "a" * (MOST_OUTPUT - 1) + "\n"


def test_output_without_end_is_ended() -> None:
    outcome = run("while True: print('a' * 1_000_000)")
    assert isinstance(outcome, FailedCalculation)
    assert len(outcome.output) <= MOST_OUTPUT + 1


def test_variables_of_this_process_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARRY_LLM_API_KEY", SECRET)
    said = calculate("import os\nprint(dict(os.environ))\nprint(__import__('sys').argv)")
    assert SECRET not in said
    assert not any(value in said for key, value in os.environ.items() if key == "HOME")


def test_nothing_is_kept_between_runs() -> None:
    calculate("import builtins, math\nbuiltins.kept = math.pi = 3")
    assert calculate("import math\nprint(math.pi, 'kept' in dir(__builtins__))").startswith("3.14")
    assert fail("kept").reason.startswith("NameError")


def test_what_code_makes_of_its_surroundings_passes_for_text_only() -> None:
    forged = "import program\nprogram._encode = lambda _: 5\nprint('forged')"
    assert fail(forged).output == ""
    assert calculate("""print('{"output": "other", "problem": ""}')""").startswith('{"output"')


def test_without_its_packages_there_are_no_calculations_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(preparation, "version", find_none)
    preparation.name_version.cache_clear()
    missing = CalculationSandbox(tmp_path)
    obstacle = missing.find_obstacle()
    assert obstacle is not None
    assert "quarry-search[calculations]" in obstacle
    with pytest.raises(NotConfiguredError, match=r"quarry-search\[calculations\]"):
        missing.run_calculation("1", Deadline.after(SECONDS))
    monkeypatch.undo()
    preparation.name_version.cache_clear()
    assert missing.find_obstacle() is None


def test_a_sandbox_that_is_not_built_in_time_is_said_to_be_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "_build", lambda _: time.sleep(2))
    unbuilt = CalculationSandbox(tmp_path)
    assert not unbuilt.is_prepared
    outcome = unbuilt.run_calculation("1", Deadline.after(0.2))
    assert outcome == FailedCalculation("1", "the sandbox is still being prepared")


def test_however_many_calculations_wait_it_is_built_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, may_end = list[Path](), threading.Event()

    def build(folder: Path) -> None:
        built.append(folder)
        may_end.wait(SECONDS)

    monkeypatch.setattr(preparation, "_build", build)
    for _ in range(5):
        assert prepare_component(tmp_path, Deadline.after(0.05)) is None
    may_end.set()
    assert built == [tmp_path]


def test_a_sandbox_that_cannot_be_built_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "_PROGRAM", "raise SystemExit(1)")
    with pytest.raises(NotConfiguredError, match="could not be built"):
        prepare_component(tmp_path / "calculations", Deadline.after(SECONDS))
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotConfiguredError, match="cannot be made"):
        prepare_component(file / "calculations", Deadline.after(SECONDS))


def test_a_component_of_another_machine_is_built_anew(tmp_path: Path) -> None:
    other = replace(prepared_sandbox(), folder=tmp_path)
    compiled = find_compiled(FOLDER)
    assert compiled is not None
    (tmp_path / compiled.name).write_bytes(b"for another machine")
    outcome = other.run_calculation("1", Deadline.after(SECONDS))
    assert isinstance(outcome, FailedCalculation)
    assert "built anew" in outcome.reason
    assert not other.is_prepared
