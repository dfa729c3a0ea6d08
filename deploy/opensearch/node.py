"""One node of OpenSearch: its folder, ports and process.

A node holds a lock on the file `running` in its folder for as long as it runs. The lock, not a process number that another
program may have by now, shows that it runs.
"""

import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import IO, NoReturn

from deploy.opensearch.java import Java, find_java
from deploy.opensearch.releases import HERE, Release, SetupError
from deploy.opensearch.software import ensure_installed

TRANSPORT = 100
"""A node's transport port is its HTTP port plus this."""
DISK = "cluster.routing.allocation.disk.watermark"
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, kw_only=True)
class Node:
    release: Release
    folder: Path
    port: int
    cluster: tuple[int, ...]
    """The ports of all nodes of its cluster, including its own."""
    heap: str = "1g"
    java_options: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Additional lines of opensearch.yml."""

    @property
    def name(self) -> str:
        return f"node-{self.port}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def arguments(self) -> list[str]:
        """The arguments of the command `node` that start this node."""
        return [
            *("--version", self.release.major, "--folder", str(self.folder)),
            *("--port", str(self.port), "--cluster", ",".join(map(str, self.cluster))),
            *("--heap", self.heap),
            *(f"--java-option={option}" for option in self.java_options),
            *(f"--set={name}={value}" for name, value in self.settings.items()),
        ]


@dataclass(frozen=True)
class Found:
    process: int
    url: str


# In the process of the node


def exec_node(node: Node) -> NoReturn:
    """Replace this process by the node's Java."""
    java = find_java(node.release)
    files = ensure_installed(node.release, java)
    node.folder.mkdir(parents=True, exist_ok=True)
    lock_folder(node.folder, node.url)
    (node.folder / "opensearch.yml").write_text(configuration(node), encoding="utf-8")
    shutil.rmtree(node.folder / "tmp", ignore_errors=True)
    (node.folder / "tmp").mkdir()
    os.chdir(node.folder)
    classes = f"{files}/classes:{files}/lib/*:{files}/plugin/*"
    command = [java.program, *options(node, java), "-cp", classes, "Node", str(node.folder)]
    os.execv(java.program, [*command, *node.release.plugins])


def lock_folder(folder: Path, address: str) -> None:
    """Lock a folder for the lifetime of this process and the program that replaces it."""
    held = os.open(folder / "running", os.O_RDWR | os.O_CREAT, 0o644)
    for _ in range(20):  # a process that only looks holds the lock for a moment
        with suppress(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        time.sleep(0.05)
    else:
        raise SetupError(f"A server is already running in {folder}.")
    os.ftruncate(held, 0)
    os.write(held, f"{os.getpid()} {address}".encode())
    os.set_inheritable(held, True)  # noqa: FBT003


def options(node: Node, java: Java) -> list[str]:
    vectors = ["--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"]
    return [
        *(f"-Xms{node.heap}", f"-Xmx{node.heap}", "-XX:+UseG1GC"),
        *("-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData"),
        *("-Dfile.encoding=UTF-8", "-Djava.awt.headless=true", "-Djna.nosys=true"),
        f"-Djava.io.tmpdir={node.folder / 'tmp'}",
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
        *(vectors if java.version >= 21 else ()),
        *node.java_options,
    ]


def configuration(node: Node) -> str:
    """Return the text of opensearch.yml. Watermarks are sizes, so that a disk may be 95 % full."""
    settings = {
        "cluster.name": "quarry",
        "node.name": node.name,
        "network.host": "127.0.0.1",
        "http.port": str(node.port),
        "transport.port": str(node.port + TRANSPORT),
        f"{DISK}.low": "1gb",
        f"{DISK}.high": "500mb",
        f"{DISK}.flood_stage": "250mb",
        **discovery(node.cluster),
        **node.settings,
    }
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())


def discovery(cluster: Sequence[int]) -> Mapping[str, str]:
    if len(cluster) == 1:
        return {"discovery.type": "single-node"}
    return {
        "discovery.seed_hosts": ",".join(f"127.0.0.1:{port + TRANSPORT}" for port in cluster),
        "cluster.initial_cluster_manager_nodes": ",".join(f"node-{port}" for port in cluster),
    }


# In other processes


def spawn(node: Node) -> subprocess.Popen[bytes]:
    """Start a node that keeps running when this process ends."""
    return _start_process(node, subprocess.DEVNULL, os.environ)


def tether(node: Node) -> subprocess.Popen[bytes]:
    """Start a node that ends when this process ends, however that happens."""
    return _start_process(node, subprocess.PIPE, os.environ | {"OPENSEARCH_TETHER": "1"})


def _start_process(
    node: Node, stdin: int, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    node.folder.mkdir(parents=True, exist_ok=True)
    with node.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "deploy.opensearch.server", "node", *node.arguments],
            cwd=HERE.parents[1],
            stdin=stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Let the node close its shards, and kill it after half a minute."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(30)
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End the node at once, like a power failure."""
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()


def find_running(folder: Path) -> Found | None:
    """Return the node that runs in a folder, if one does."""
    try:
        while True:
            with (folder / "running").open() as held:
                if _is_lockable(held):
                    return None
                match held.read().split():
                    case [process, url]:
                        return Found(int(process), url)
                    case _:  # it has locked the file and not written to it yet
                        time.sleep(0.01)
    except FileNotFoundError:
        return None


def _is_lockable(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait(nodes: Sequence[Node], started: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Wait until every node answers.

    Raises:
        SetupError: a started node ended, or the time is over; with the ends of the logs.
    """
    began, reported = time.monotonic(), 0
    while not all(map(is_healthy, nodes)):
        waited = int(time.monotonic() - began)
        if any(process.poll() is not None for process in started):
            raise SetupError(f"A server ended instead of starting.\n{tails(nodes)}")
        if waited >= seconds:
            raise SetupError(f"A server does not answer after {waited} s.\n{tails(nodes)}")
        if waited // 5 > reported:
            reported = waited // 5
            print(f"Waiting for it to answer ({waited} s)...", flush=True)
        time.sleep(0.3)


def is_healthy(node: Node) -> bool:
    """Whether the node answers, its cluster is complete, and every primary shard is assigned."""
    try:
        with NO_PROXY.open(f"{node.url}/_cluster/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, HTTPException, ValueError):
        return False
    complete = health["number_of_nodes"] == len(node.cluster)
    return complete and health["status"] in ("green", "yellow")


def tails(nodes: Sequence[Node], lines: int = 25) -> str:
    """Return the ends of the nodes' logs."""
    logs = [(node.log, node.log.read_text(errors="replace")) for node in nodes if node.log.exists()]
    ends = [(log, "\n".join(text.splitlines()[-lines:])) for log, text in logs]
    return "\n".join(f"The end of {log}:\n{end}" for log, end in ends)


# Ports


def find_free_ports(count: int) -> tuple[int, ...]:
    """Return free ports for nodes that start now.

    They are below the range of client ports: a client that keeps trying to reach a stopped server could otherwise be given
    the server's own port, and connect to itself.
    """
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(10_000, 30_000)
        taken = {*found, *(each + TRANSPORT for each in found)}
        if not taken & {port, port + TRANSPORT} and is_free(port) and is_free(port + TRANSPORT):
            found.add(port)
    return tuple(found)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
