"""Build the component of the sandbox and compile it for this machine: some 20 seconds of a processor, once.

It is compiled by processes of their own, since that takes 400 MB.
"""

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from filelock import FileLock

from connectors.errors import NotConfiguredError
from indexing.runtime.deadline import Deadline

_GUEST = Path(__file__).with_name("guest")
_PACKAGES = ("componentize-py", "wasmtime")
_PROGRAM = (
    "from backend.research.calculations.component_build import write_compiled; write_compiled()"
)
_LONGEST_BUILD = 600
_BUILDERS_LOCK = threading.Lock()
_BUILDERS: dict[Path, threading.Thread] = {}
"""The last one of each folder: however many calculations wait, one builds."""
_MISSING = "Calculations need the extra of that name: pip install 'quarry-search[calculations]'."


def find_compiled(folder: Path) -> Path | None:
    """Return the compiled component of these versions; None where it has not been prepared.

    Raises:
        NotConfiguredError: the packages are not installed.
    """
    compiled = folder / f"{name_version()}.cwasm"
    return compiled if compiled.exists() else None


def prepare_component(folder: Path, deadline: Deadline) -> Path | None:
    """Return the compiled component, made where there is none; None where that takes longer than there is time.

    It goes on behind the deadline, so that it is there later.

    Raises:
        NotConfiguredError: the packages are not installed, or they cannot build it.
    """
    if (compiled := find_compiled(folder)) is None:
        _make_folder(folder)
        builder = _find_builder(folder)
        builder.join(deadline.remaining())
        compiled = find_compiled(folder)
        if compiled is None and not builder.is_alive():
            raise NotConfiguredError(f"The sandbox of calculations could not be built in {folder}.")
    return compiled


def _find_builder(folder: Path) -> threading.Thread:
    """Return the thread that builds in a folder: the one that does, or else a new one."""
    with _BUILDERS_LOCK:
        builder = _BUILDERS.get(folder)
        if builder is None or not builder.is_alive():
            builder = threading.Thread(target=_build, args=[folder], daemon=True)
            builder.start()
            _BUILDERS[folder] = builder
        return builder


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise NotConfiguredError(f"{folder} cannot be made: {error.strerror}.") from error


def forget_component(folder: Path) -> None:
    """Delete what was compiled, for another processor perhaps."""
    if compiled := find_compiled(folder):
        compiled.unlink(missing_ok=True)


@cache
def name_version() -> str:
    """Name what the compiled component depends on.

    Raises:
        NotConfiguredError: the packages are not installed.
    """
    try:
        versions = "-".join(map(version, _PACKAGES))
    except PackageNotFoundError:
        raise NotConfiguredError(_MISSING) from None
    program = b"".join(file.read_bytes() for file in sorted(_GUEST.iterdir()) if file.is_file())
    return f"{hashlib.sha256(program).hexdigest()[:16]}-{versions}-{platform.machine()}"


def _build(folder: Path) -> None:
    """Put the compiled component into a folder, unless another process did meanwhile."""
    with FileLock(folder / "build.lock"), tempfile.TemporaryDirectory(dir=folder) as work:
        if find_compiled(folder) is not None:
            return
        built = Path(work) / "calculation.cwasm"
        arguments = [sys.executable, "-P", "-c", _PROGRAM, str(_GUEST), str(built)]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                arguments,
                # No other variables: they would let packages of this environment into the component.
                env={"PYTHONPATH": os.pathsep.join(sys.path)},
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_LONGEST_BUILD,
                check=False,
            )
        if built.exists():
            built.rename(folder / f"{name_version()}.cwasm")
