"""One Chromium with the process that drives it: started, asked for one page at a time, and killed with all that it started."""

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from backend.web_search.browser.chromium import (
    clean_environment,
    list_flags,
    write_launcher,
)
from backend.web_search.browser.process_tree import (
    describe_processes,
    kill_descendants,
    list_descendants,
    measure_memory,
)
from connectors.closing import Closing
from connectors.errors import NotConfiguredError, SourceError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

_START_SECONDS = 30.0
_PROGRAM = (
    "import sys; from backend.web_search.browser.page_program import serve_orders;"
    " serve_orders(*sys.argv[1:])"
)
_LOOK_SECONDS = 0.25
"""Between two looks at the memory and the deadline."""
_MAX_ANSWER = 40_000_000
"""Bytes; a page of `MAX_HTML` characters, written as JSON, is shorter."""
_RETRY_AFTER = timedelta(seconds=30)
_NO_SANDBOX = (
    "Chromium's sandbox does not work on this machine, so no page is read in a browser. Allow user"
    " namespaces for it (kernel.unprivileged_userns_clone and user.max_user_namespaces; on Ubuntu"
    " kernel.apparmor_restrict_unprivileged_userns; in a container a seccomp profile that allows them),"
    " or install its helper (on Debian: apt-get install chromium-sandbox)."
)


class PageNotRenderedError(SourceError):
    """A page could not be read in the browser; the next one may."""


class BrowserEndedError(Exception):
    """The process has ended without an answer, such as after a time without orders."""


@dataclass(frozen=True, slots=True)
class Order:
    """One page to be opened.

    Attributes:
        proxy: Address of the proxy, such as `http://127.0.0.1:3128`.
        name: By which, with the password, the proxy knows the page.
        seconds: After which what is there by then is the page.
    """

    url: str
    proxy: str
    name: str
    password: str
    seconds: float


class BrowserProcess(Closing):
    """Chromium behind a proxy. Not thread-safe."""

    def __init__(
        self, chromium: Path, proxy_port: int, memory_bytes: int, deadline: Deadline
    ) -> None:
        """Start Chromium, and wait until it is ready.

        Raises:
            NotConfiguredError: it does not start, or without its sandbox.
            TemporarilyUnavailableError: it does not start in time.
            DeadlineExceededError: the deadline has passed.
        """
        self.pages = 0
        self._memory_bytes = memory_bytes
        self._folder = Path(tempfile.mkdtemp(prefix="quarry-"))
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            # Its profile, inside, may belong to somebody else.
            self._folder.chmod(0o711)
            launcher = write_launcher(self._folder, chromium, memory_bytes)
            self._process = self._start(launcher, list_flags(proxy_port, memory_bytes))
            stack.callback(self.close)
            self._wait_until_ready(deadline)
            stack.pop_all()

    def _start(self, launcher: Path, flags: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(launcher), json.dumps(flags)],
                env=clean_environment(self._folder) | {"PYTHONPATH": os.pathsep.join(sys.path)},
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def _wait_until_ready(self, deadline: Deadline) -> None:
        try:
            self._receive(deadline.limited_to(_START_SECONDS))
        except BrowserEndedError:
            raise self._explain_failed_start() from None
        except DeadlineExceededError:
            deadline.check()
            raise TemporarilyUnavailableError(
                "The browser did not start in time.", _RETRY_AFTER
            ) from None
        if not self.is_sandboxed():
            raise NotConfiguredError(_NO_SANDBOX)

    def _explain_failed_start(self) -> NotConfiguredError:
        log = (self._folder / "log").read_text(encoding="utf-8", errors="replace")
        if "No usable sandbox" in log or "sandbox helper" in log:
            return NotConfiguredError(_NO_SANDBOX)
        if "No module named 'playwright'" in log:
            return NotConfiguredError(
                "Pages that need a browser cannot be read. Install the extra `browser`:"
                " pip install 'quarry-search[browser]'."
            )
        lines = [line.strip() for line in log.splitlines() if line.strip()] or ["no message"]
        telling = next((line for line in lines if "FATAL" in line), lines[-1])
        return NotConfiguredError(f"The browser does not start: {telling[:300]}")

    def is_sandboxed(self) -> bool:
        """Return whether every process of pages filters system calls, and none was started without a sandbox."""
        processes = describe_processes(list_descendants(self._process.pid))
        pages = [process for process in processes if "--type=renderer" in process.arguments]
        return (
            bool(pages)
            and all(page.status.get("Seccomp:") == "2" for page in pages)
            and not any("--no-sandbox" in process.arguments for process in processes)
        )

    @property
    def number(self) -> int:
        """The number of the process below which all of the browser is."""
        return self._process.pid

    def render(self, order: Order, deadline: Deadline) -> dict[str, Any]:
        """Return what the process answers.

        Raises:
            BrowserEndedError: it has ended.
            DeadlineExceededError: the page is not there in time.
            PageNotRenderedError: the page takes more memory than it may.
        """
        self.pages += 1
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(_to_json(order)).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise BrowserEndedError from None
        return self._receive(deadline)

    def _receive(self, deadline: Deadline) -> dict[str, Any]:
        assert self._process.stdout is not None
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                deadline.check()
                if selector.select(min(_LOOK_SECONDS, deadline.remaining())):
                    self._read_more(received)
                if measure_memory(self.number) > self._memory_bytes:
                    raise PageNotRenderedError("The page takes more memory than it may.")
        answer: dict[str, Any] = json.loads(received)
        return answer

    def _read_more(self, received: bytearray) -> None:
        assert self._process.stdout is not None
        data = os.read(self._process.stdout.fileno(), 1 << 20)
        if not data:
            raise BrowserEndedError
        received += data
        if len(received) > _MAX_ANSWER:
            raise PageNotRenderedError("The page is too large.")

    def close(self) -> None:
        """Kill it, and remove what it left on the disk."""
        kill_descendants(self._process.pid)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _to_json(order: Order) -> dict[str, Any]:
    return {
        "url": order.url,
        "proxy": order.proxy,
        "name": order.name,
        "password": order.password,
        "seconds": order.seconds,
    }
