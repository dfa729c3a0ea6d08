"""PostgreSQL and Redis on this machine without a container, to develop and to test against.

    make services             start both and OpenSearch on loopback, wait until they answer; what runs is left alone
    make services-stop        stop these three; other nodes of `make opensearch` stay
    python3 -m deploy.services.server during COMMAND...

The last runs a command beside a PostgreSQL and a Redis of its own; it finds their addresses in QUARRY_TEST_POSTGRESQL and
QUARRY_TEST_REDIS. Needed are the programs of Debian's packages postgresql and redis-server; as root they are installed where
they are missing. State and logs lie under .cache/services/ of the repository.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from deploy.opensearch import server as opensearch
from deploy.opensearch.node import find_free_ports, find_running, is_free
from deploy.opensearch.releases import OLDER, SetupError
from deploy.opensearch.server import run_command, say
from deploy.opensearch.software import exclusive_lock
from deploy.services.service import KINDS, Service
from deploy.services.software import CACHE, install
from deploy.services.supervisor import (
    KILL,
    PATIENCE,
    end,
    end_with_standard_input,
    spawn,
    supervise,
    tails,
    tether,
    wait,
)

NAMES = {kind.name: kind for kind in KINDS}
PRODUCT = {"postgresql": "QUARRY_DATABASE_URL"}
"""Where Quarry itself looks for the address of those that it asks."""


def start(seconds: float) -> None:
    install()
    with exclusive_lock(CACHE / "start.lock"):
        services = [lasting(kind) for kind in KINDS]
        absent = [service for service in services if not find_running(service.folder)]
        wait(services, [spawn(service) for service in absent], seconds)
    for service in services:
        state = "runs" if service in absent else "runs already"
        say(f"{service.title} {state} on 127.0.0.1:{service.port}; its log: {service.log}")
    opensearch.start(OLDER, 1, None, seconds)
    say("To stop them all: make services-stop. For Quarry:")
    for service in services:
        if service.name in PRODUCT:
            say(f"export {PRODUCT[service.name]}={service.url}")
    say(f"export QUARRY_OPENSEARCH_URL={opensearch.plan_nodes(OLDER)[0].url}")
    say("For tests by hand:")
    for service in services:
        say(f"export {service.variable}={service.url}")


def lasting(kind: type[Service]) -> Service:
    """The server of `make services`, on its usual port or, where that is taken, on another."""
    folder = CACHE / kind.name
    if found := find_running(folder):
        return kind(folder=folder, port=int(found.url))
    port = kind.usual_port if is_free(kind.usual_port) else find_free_ports(1)[0]
    return kind(folder=folder, port=port)


def stop() -> None:
    for kind in KINDS:
        folder, deadline = CACHE / kind.name, time.monotonic() + PATIENCE
        if not find_running(folder):
            continue
        send_signal(folder, signal.SIGTERM)
        while find_running(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        send_signal(folder, KILL)
        say(f"Stopped {kind.title}.")
    opensearch.stop(30, f"{OLDER.major}/*")


def send_signal(folder: Path, what: signal.Signals) -> None:
    if found := find_running(folder):
        with suppress(ProcessLookupError):
            os.kill(found.process, what)


def during(command: Sequence[str], seconds: float) -> int:
    """Run a command beside servers of its own, and return its exit code.

    A server that the environment names is used as it is. The others start empty, on free ports; they end with the
    command, or with this process if that ends first.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    environment = dict(os.environ)
    kinds = [kind for kind in KINDS if kind.variable not in environment]
    if kinds:
        install()
    with ExitStack() as stack:
        services = [passing(kind, stack) for kind in kinds]
        started = [tether(service) for service in services]
        for process in started:
            stack.callback(end, process)
        wait(services, started, seconds)
        for service in services:
            say(f"{service.title} runs on 127.0.0.1:{service.port}")
            environment[service.variable] = service.url
        code = run_command(command, environment)
        if any(process.poll() is not None for process in started):
            say(f"A server ended by itself meanwhile.\n{tails(services)}")
        return code


def passing(kind: type[Service], stack: ExitStack) -> Service:
    """A server on a free port, in a folder that lasts as long as the stack."""
    folder = tempfile.TemporaryDirectory(prefix=f"quarry-{kind.name}-")
    (port,) = find_free_ports(1)
    return kind(folder=Path(stack.enter_context(folder)), port=port, data="passing")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deploy.services.server",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=180, help="how long a start may take")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start", help="start on loopback, wait until they answer")
    commands.add_parser("stop", help="stop everything that was started")
    during = commands.add_parser("during", help="run a command beside servers of its own")
    during.add_argument("words", nargs=argparse.REMAINDER, help="the command")
    for name, does in (
        ("keep", "until it is terminated"),
        ("keep-tethered", "until standard input ends"),
    ):
        kept = commands.add_parser(name, help=f"be one server, in the foreground, {does}")
        kept.add_argument("name", choices=NAMES)
        kept.add_argument("--folder", type=Path, required=True, help="of its data and log")
        kept.add_argument("--port", type=int, required=True)
        kept.add_argument("--data", choices=["kept", "passing"], default="kept")
    return parser


def described(asked: argparse.Namespace) -> Service:
    return NAMES[asked.name](folder=asked.folder.resolve(), port=asked.port, data=asked.data)


def main() -> int:
    asked = parser().parse_args()
    try:
        match asked.command:
            case "start":
                start(asked.seconds)
            case "stop":
                stop()
            case "during":
                return during(asked.words, asked.seconds)
            case _:
                if asked.command == "keep-tethered":
                    end_with_standard_input()
                return supervise(described(asked))
    except SetupError as reason:
        print(reason, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
