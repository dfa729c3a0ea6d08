"""The supervisor of a server: it starts the server, ends it on a signal, and lives as long as it does.

By its lock on the file `running` of the server's folder the server is known to run. One that is tethered ends as soon as its
standard input does, so a server that a test started cannot outlive the test, however the test dies.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from deploy.opensearch.node import lock_folder
from deploy.opensearch.releases import SetupError
from deploy.services.service import Service

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 20
"""Seconds that a server has to end by itself."""
KILL = signal.SIGUSR1
"""Makes the supervisor kill its server and wait for its end: PostgreSQL does not start beside a zombie."""


# In the process of the supervisor


def supervise(service: Service) -> int:
    """Be the parent of the server until it ends, and return its exit code."""
    started: list[subprocess.Popen[bytes]] = []
    received: list[int] = []

    def pass_on(number: int) -> None:
        received.append(number)
        for server in started:
            server.send_signal(number)

    # SIGINT: PostgreSQL waits for no client that is connected, Redis does the same as on SIGTERM.
    # Before it is started: a server may answer, and be ended, before this process is given another turn.
    signal.signal(signal.SIGTERM, lambda *_: pass_on(signal.SIGINT))
    signal.signal(KILL, lambda *_: pass_on(signal.SIGKILL))
    service.folder.mkdir(parents=True, exist_ok=True)
    lock_folder(service.folder, str(service.port))
    service.prepare()
    server = subprocess.Popen(
        service.command,
        user=service.user,
        group=service.user,
        extra_groups=service.user and [],
        cwd=service.store,
        stdin=subprocess.DEVNULL,
    )
    started.append(server)
    for number in tuple(received):
        server.send_signal(number)
    return server.wait()


def end_with_standard_input() -> None:
    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)
        os.kill(os.getpid(), KILL)

    threading.Thread(target=watch, daemon=True).start()


# From other processes


def spawn(service: Service) -> subprocess.Popen[bytes]:
    """Start a server that outlives this process."""
    return _spawn(service, "keep", subprocess.DEVNULL)


def tether(service: Service) -> subprocess.Popen[bytes]:
    """Start a server that ends with this process, however that ends."""
    return _spawn(service, "keep-tethered", subprocess.PIPE)


def _spawn(service: Service, command: str, stdin: int) -> subprocess.Popen[bytes]:
    service.folder.mkdir(parents=True, exist_ok=True)
    arguments = ["--folder", str(service.folder), "--port", str(service.port)]
    with service.log.open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "deploy.services.server", command, service.name),
                *arguments,
                *("--data", service.data),
            ],
            cwd=ROOT,
            stdin=stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the server; kill it if it has not ended after `PATIENCE`."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the server at once, as a power cut would."""
    if process.poll() is None:
        process.send_signal(KILL)
        process.wait()
    if process.stdin:
        process.stdin.close()


def wait(
    services: Sequence[Service], started: Sequence[subprocess.Popen[bytes]], seconds: float
) -> None:
    """Wait until every server answers.

    Raises:
        SetupError: one ended, or the time is over; with the ends of their logs.
    """
    begun = time.monotonic()
    while not all(service.answers() for service in services):
        if any(process.poll() is not None for process in started):
            raise SetupError(f"A server ended instead of starting.\n{tails(services)}")
        if time.monotonic() - begun >= seconds:
            raise SetupError(f"A server does not answer after {seconds:.0f} s.\n{tails(services)}")
        time.sleep(0.05)


def tails(services: Sequence[Service], lines: int = 15) -> str:
    logs = [each.log for each in services if each.log.exists()]
    ends = [(log, log.read_text(errors="replace").splitlines()[-lines:]) for log in logs]
    return "\n".join(f"The end of {log}:\n" + "\n".join(end) for log, end in ends)
