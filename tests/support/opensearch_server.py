"""Real OpenSearch servers for tests: those that a run of the suite shares, and ones of a test's own to be mistreated.

Shared servers keep their data for the whole run: a test works under an index prefix of its own and clears up. Where no Java
fits OpenSearch 3.x, `make test` leaves out by name what is tested on it: a test that needs it has "opensearch-3" in its id.
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

from deploy.opensearch.node import NO_PROXY, Node, end, free_ports, kill, tails, tether, wait
from deploy.opensearch.releases import RELEASES

START_SECONDS = 180
"""For a busy machine; at rest a server takes ten."""
QUICK_TO_START = ("-XX:TieredStopAtLevel=1",)
"""Half the work of a start; what such a server does is over before better code would pay."""
_RELEASES = {release.name: release for release in RELEASES.values()}
SERVERS = tuple(_RELEASES)
"""The names "opensearch-2" and "opensearch-3"."""


def url_of(name: str) -> str:
    """The address of the server of that name which the whole run shares."""
    release = _RELEASES[name]
    if url := os.environ.get(release.variable):
        return url
    raise LookupError(
        f"No {name} to test against, for {release.variable} is not set. `make test` starts one; by"
        f" hand: make opensearch VERSION={release.major}, then the export that it prints."
    )


class _Block:
    """Started when its `with` block is entered, closed when that ends, whether or not it started."""

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
    """A node of a test's own, on free ports and in a folder of its own, which is gone afterwards.

    It keeps ports and data over `stop`, `kill` and `start`, and ends when the test process does, however that happens.
    `settings` are lines of opensearch.yml; of the disk watermarks all three are given together, as sizes.
    """

    def __init__(
        self, name: str, settings: Mapping[str, str] | None = None, ports: Sequence[int] = ()
    ) -> None:
        """`ports`: of all nodes of its cluster, its own first. None are for a server that is alone."""
        self._folder = tempfile.TemporaryDirectory(prefix="quarry-opensearch-")
        self._process: subprocess.Popen[bytes] | None = None
        cluster = tuple(ports) or free_ports(1)
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
        """Start it, once more after `stop` or `kill`; it answers, and its cluster is complete."""
        wait([self.node], [self.launch()], START_SECONDS)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start it without waiting."""
        if self.runs:
            raise ValueError(f"{self.url} runs already")
        self._process = tether(self.node)
        return self._process

    def stop(self) -> None:
        """SIGTERM: it closes its shards first."""
        if self._process:
            end(self._process)

    def kill(self) -> None:
        """SIGKILL: gone in the middle of whatever it did."""
        if self._process:
            kill(self._process)

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()


class Cluster(_Block):
    """Three nodes, each a `Server`: kill one, ask the others, start it again."""

    def __init__(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        ports = free_ports(3)
        turned = [ports[first:] + ports[:first] for first in range(len(ports))]
        self.nodes = [Server(name, settings, each) for each in turned]

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.nodes]

    def start(self) -> None:
        """Start all that do not run; the cluster is complete."""
        started = [server.launch() for server in self.nodes if not server.runs]
        wait([server.node for server in self.nodes], started, START_SECONDS)

    def close(self) -> None:
        for server in self.nodes:
            server.close()

    def manager(self, seconds: float = 60) -> Server:
        """The node that is elected, among those that run."""
        standing = {server.node.name: server for server in self.nodes if server.runs}
        path = "/_cat/cluster_manager?format=json&h=node&cluster_manager_timeout=2s"
        told = self._once(path, lambda rows: rows[0]["node"] in standing, seconds)
        return standing[told[0]["node"]]

    def wait(self, colour: Literal["yellow", "green"], nodes: int, seconds: float = 60) -> None:
        """Until it has this colour or a better one, and this many nodes."""
        good = {"green", colour}
        self._once(
            "/_cluster/health?cluster_manager_timeout=2s",
            lambda health: health["status"] in good and health["number_of_nodes"] == nodes,
            seconds,
        )

    def _once(self, path: str, ready: Callable[[Any], bool], seconds: float) -> Any:
        """What a node that runs says, once it is `ready`."""
        deadline = time.monotonic() + seconds
        while not ((told := self._ask(path)) and ready(told)):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{path} after {seconds:.0f} s: {told}\n{tails(self._standing())}"
                )
            time.sleep(0.2)
        return told

    def _ask(self, path: str) -> Any:
        for node in self._standing():
            with (
                suppress(OSError, HTTPException),
                NO_PROXY.open(node.url + path, timeout=10) as answer,
            ):
                return json.load(answer)
        return None

    def _standing(self) -> list[Node]:
        return [server.node for server in self.nodes if server.runs]
