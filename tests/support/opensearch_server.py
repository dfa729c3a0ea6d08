"""Real OpenSearch servers for tests: shared ones, and ones that a test may stop, kill and fill.

Shared servers keep their data for the whole run: a test uses an index prefix of its own and deletes its indexes. Without a Java
for OpenSearch 3.x its tests are deselected by name: a test that needs it has "opensearch-3" in its id.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal, Self

from deploy.opensearch.node import NO_PROXY, Node, end, find_free_ports, kill, tails, tether, wait
from deploy.opensearch.releases import RELEASES

START_SECONDS = 180
"""For a busy machine; an idle one needs ten."""
QUICK_TO_START = ("-XX:TieredStopAtLevel=1",)
"""Halves the work of a start; such a server stops before better code would pay off."""
_RELEASES = {release.name: release for release in RELEASES.values()}
SERVERS = tuple(_RELEASES)
"""The names "opensearch-2" and "opensearch-3"."""


def url_of(name: str) -> str:
    """Return the address of the shared server of that name."""
    release = _RELEASES[name]
    if url := os.environ.get(release.variable):
        return url
    raise LookupError(
        f"No {name} to test against, for {release.variable} is not set. `make test` starts one; by"
        f" hand: make opensearch VERSION={release.major}, then the export that it prints."
    )


class _Block:
    """Starts when its `with` block is entered, and closes when the block ends or the start fails."""

    def start(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.close)
            self.start()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Server(_Block):
    """A node for one test, on free ports and in a temporary folder.

    It keeps ports and data over `stop`, `kill` and `start`, and ends when the test process does, however that happens.
    `settings` are lines of opensearch.yml; of the disk watermarks all three are given together, as sizes.
    """

    def __init__(
        self, name: str, settings: Mapping[str, str] | None = None, ports: Sequence[int] = ()
    ) -> None:
        """`ports`: of all nodes of its cluster, its own first; none for a single server."""
        self._folder = tempfile.TemporaryDirectory(prefix="quarry-opensearch-")
        self._process: subprocess.Popen[bytes] | None = None
        cluster = tuple(ports) or find_free_ports(1)
        self.node = Node(
            release=_RELEASES[name],
            folder=Path(self._folder.name),
            port=cluster[0],
            cluster=cluster,
            heap="512m",
            java_options=QUICK_TO_START,
            settings=settings or {},
        )

    @property
    def url(self) -> str:
        return self.node.url

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the node, also after `stop` or `kill`, and wait until its cluster is complete."""
        wait([self.node], [self.launch()], START_SECONDS)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the node without waiting."""
        if self.runs:
            raise ValueError(f"{self.url} is already running")
        self._process = tether(self.node)
        return self._process

    def stop(self) -> None:
        """Send SIGTERM: the node closes its shards first."""
        if self._process:
            end(self._process)

    def kill(self) -> None:
        """Send SIGKILL: the node ends in the middle of its work."""
        if self._process:
            kill(self._process)

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()


class Cluster(_Block):
    """Three nodes that can be killed and started again one by one."""

    def __init__(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        ports = find_free_ports(3)
        rotated = [ports[first:] + ports[:first] for first in range(len(ports))]
        self.nodes = [Server(name, settings, each) for each in rotated]

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.nodes]

    def start(self) -> None:
        """Start all stopped nodes, and wait until the cluster is complete."""
        started = [server.launch() for server in self.nodes if not server.runs]
        wait([server.node for server in self.nodes], started, START_SECONDS)

    def close(self) -> None:
        for server in self.nodes:
            server.close()

    def manager(self, seconds: float = 60) -> Server:
        """Return the elected manager, among the running nodes."""
        running = {server.node.name: server for server in self.nodes if server.runs}
        path = "/_cat/cluster_manager?format=json&h=node&cluster_manager_timeout=2s"
        response = self._wait_for(path, lambda rows: rows[0]["node"] in running, seconds)
        return running[response[0]["node"]]

    def wait(self, color: Literal["yellow", "green"], nodes: int, seconds: float = 60) -> None:
        """Wait until the cluster has this status or a better one, and this many nodes."""
        good = {"green", color}
        self._wait_for(
            "/_cluster/health?cluster_manager_timeout=2s",
            lambda health: health["status"] in good and health["number_of_nodes"] == nodes,
            seconds,
        )

    def _wait_for(self, path: str, ready: Callable[[Any], bool], seconds: float) -> Any:
        """Return the response of a running node once it is `ready`."""
        deadline = time.monotonic() + seconds
        while not ((response := self._get(path)) and ready(response)):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{path} after {seconds:.0f} s: {response}\n{tails(self._running_nodes())}"
                )
            time.sleep(0.2)
        return response

    def _get(self, path: str) -> Any:
        for node in self._running_nodes():
            with (
                suppress(OSError, HTTPException),
                NO_PROXY.open(node.url + path, timeout=10) as stream,
            ):
                return json.load(stream)
        return None

    def _running_nodes(self) -> list[Node]:
        return [server.node for server in self.nodes if server.runs]
