"""Runs OpenSearch on this machine without a container, for development and tests.

    make opensearch                    start on loopback and wait until it answers; running servers are left as they are
    make opensearch-stop               stop all servers that were started this way; with VERSION=3, those of that release
    python3 -m deploy.opensearch.server during COMMAND...

The last runs a command while a server of each release runs; it finds their addresses in its environment. Needed are Python,
Java and, once, Maven; no right of root. Server, logs and data lie under .cache/opensearch/ of the repository.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from deploy.opensearch.java import JavaNotFoundError, find_java
from deploy.opensearch.node import (
    TRANSPORT,
    Node,
    end,
    exec_node,
    find_free_ports,
    find_running,
    is_free,
    spawn,
    tails,
    tether,
    wait,
)
from deploy.opensearch.releases import CACHE, NEWER, OLDER, RELEASES, Release, SetupError
from deploy.opensearch.software import ensure_installed, exclusive_lock

SERVERS = CACHE / "servers"


# Start and stop


def start(release: Release, count: int, port: int | None, seconds: float) -> None:
    nodes = plan_nodes(release, count, port)
    folder = nodes[0].folder.parent
    with exclusive_lock(CACHE / f"{folder.name}.lock"):
        absent = [node for node in nodes if not is_running(node)]
        if absent:
            for node in absent:
                check_ports(node)
            ensure_installed(release, find_java(release))
            say(f"Starting {release}...")
        wait(nodes, [spawn(node) for node in absent], seconds)
    state = "is running" if absent else "is already running"
    say(f"{release} {state}: {' '.join(node.url for node in nodes)}")
    say(f"Logs: {folder}/*/server.log. To stop it: make opensearch-stop VERSION={release.major}")
    if count == 1:
        say(f"For tests by hand: export {release.variable}={nodes[0].url}")


def plan_nodes(release: Release, count: int = 1, port: int | None = None) -> list[Node]:
    """Return the nodes of `make opensearch`."""
    folder = SERVERS / (release.major if count == 1 else f"{release.major}x{count}")
    default = release.port if count == 1 else release.cluster_port
    first = port or find_running_port(folder) or default
    cluster = tuple(range(first, first + count))
    heap = "1g" if count == 1 else "512m"
    return [
        Node(
            release=release,
            folder=folder / f"node-{number}",
            port=port,
            cluster=cluster,
            heap=heap,
        )
        for number, port in enumerate(cluster, 1)
    ]


def find_running_port(folder: Path) -> int | None:
    """Return the first port of the cluster if one of its nodes is running."""
    for number in range(1, 10):
        if found := find_running(folder / f"node-{number}"):
            return int(found.url.rpartition(":")[2]) - number + 1
    return None


def is_running(node: Node) -> bool:
    found = find_running(node.folder)
    if found and found.url != node.url:
        raise SetupError(
            f"{node.release} is already running on {found.url}. To stop it: make opensearch-stop"
            f" VERSION={node.release.major}."
        )
    return found is not None


def check_ports(node: Node) -> None:
    for port in (node.port, node.port + TRANSPORT):
        if not is_free(port):
            raise SetupError(
                f"Port {port} is in use by another program. Choose another: make opensearch PORT=…"
                f" (a node uses PORT and PORT + {TRANSPORT}, the next node of its cluster PORT + 1…)."
            )


def stop(seconds: float, which: str = "*/*") -> None:
    """Stop the servers in folders that match the pattern: by default all that were started."""
    folders = [folder for folder in sorted(SERVERS.glob(which)) if find_running(folder)]
    for folder in folders:
        send_signal(folder, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    for folder in folders:
        while find_running(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
        send_signal(folder, signal.SIGKILL)
        say(f"Stopped {folder.relative_to(SERVERS)}.")


def send_signal(folder: Path, what: signal.Signals) -> None:
    if found := find_running(folder):
        with suppress(ProcessLookupError):
            os.kill(found.process, what)


# Run a command beside servers


def during(
    command: Sequence[str],
    releases: Sequence[Release],
    seconds: float,
    java_options: Sequence[str] = (),
) -> int:
    """Run a command beside a server of each of these releases, and return its exit code.

    A server that the environment names, or that `start` started, is used as it is. The others are started on empty
    folders and free ports, with these options of Java; they end with the command, or with this process if that ends first.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    environment = dict(os.environ)
    with ExitStack() as stack:
        nodes, started = [], []
        for release in available_releases(environment, releases):
            node = plan_nodes(release)[0]
            if not find_running(node.folder):
                node = replace(on_free_port(node, stack), java_options=tuple(java_options))
                started.append(tether(node))
                stack.callback(end, started[-1])
            nodes.append(node)
        wait(nodes, started, seconds)
        for node in nodes:
            say(f"{node.release} is running: {node.url}")
            environment[node.release.variable] = node.url
        code = run_command(command, environment)
        if any(process.poll() is not None for process in started):
            say(f"A server ended unexpectedly.\n{tails(nodes)}")
        return code


def available_releases(
    environment: dict[str, str], releases: Sequence[Release]
) -> Iterator[Release]:
    """The releases to serve. Where no Java fits the newer one, its tests are left out by their name."""
    if OLDER in releases and OLDER.variable not in environment:
        ensure_installed(OLDER, find_java(OLDER))
        yield OLDER
    if NEWER not in releases or NEWER.variable in environment:
        return
    try:
        ensure_installed(NEWER, find_java(NEWER))
    except JavaNotFoundError as reason:
        given = environment.get("PYTEST_ADDOPTS", "")
        environment["PYTEST_ADDOPTS"] = f"{given} -k 'not {NEWER.name}'".strip()
        say(f"{reason}\nDeselected for that: the tests named {NEWER.name}.")
    else:
        yield NEWER


def on_free_port(node: Node, stack: ExitStack) -> Node:
    """Return the node with a free port and a folder that is deleted with the stack."""
    folder = tempfile.TemporaryDirectory(prefix="quarry-opensearch-")
    (port,) = find_free_ports(1)
    return replace(node, folder=Path(stack.enter_context(folder)), port=port, cluster=(port,))


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command receives it too, and handles it
    try:
        code = process.wait()
    finally:
        process.terminate()
        process.wait()
    return code if code >= 0 else 128 - code


# The command line


def say(text: str) -> None:
    print(text, flush=True)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deploy.opensearch.server",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=180, help="timeout of a start")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start on loopback, wait until it answers")
    start.add_argument("--version", choices=RELEASES, default="2")
    start.add_argument("--nodes", type=int, choices=range(1, 10), default=1)
    start.add_argument("--port", type=int, help="of the first node")
    install = commands.add_parser(
        "install",
        help="fetch the files of a release, unless they are there or the environment names a server",
    )
    install.add_argument("--version", choices=RELEASES, default="2")
    stop = commands.add_parser("stop", help="stop what was started")
    stop.add_argument("--version", choices=RELEASES, help="only servers of this release")
    during = commands.add_parser("during", help="run a command beside a server of each release")
    during.add_argument(
        "--version", choices=RELEASES, action="append", help="only this release; may be repeated"
    )
    add_java_option(during)
    during.add_argument("words", nargs=argparse.REMAINDER, help="the command")
    node = commands.add_parser("node", help="run one node in the foreground")
    node.add_argument("--version", choices=RELEASES, required=True)
    node.add_argument("--folder", type=Path, required=True, help="of its settings, data and log")
    node.add_argument("--port", type=int, required=True)
    node.add_argument("--cluster", required=True, help="the ports of all its nodes, with commas")
    node.add_argument("--heap", default="1g")
    add_java_option(node)
    node.add_argument("--set", action="append", default=[], help="NAME=VALUE of opensearch.yml")
    return parser


def add_java_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--java-option", action="append", default=[], help="such as -XX:+UseZGC")


def to_node(asked: argparse.Namespace) -> Node:
    return Node(
        release=RELEASES[asked.version],
        folder=asked.folder.resolve(),
        port=asked.port,
        cluster=tuple(int(port) for port in asked.cluster.split(",")),
        heap=asked.heap,
        java_options=tuple(asked.java_option),
        settings=dict(setting.split("=", 1) for setting in asked.set),
    )


def main() -> int:
    asked = parser().parse_args()
    try:
        match asked.command:
            case "start":
                start(RELEASES[asked.version], asked.nodes, asked.port, asked.seconds)
            case "install":
                release = RELEASES[asked.version]
                if release.variable not in os.environ:
                    ensure_installed(release, find_java(release))
            case "stop":
                stop(30, f"{asked.version or ''}*/*")
            case "during":
                chosen = [RELEASES[version] for version in asked.version or RELEASES]
                return during(asked.words, chosen, asked.seconds, asked.java_option)
            case _:
                exec_node(to_node(asked))
    except SetupError as reason:
        print(reason, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
