"""The servers that other tests use: they have the right version, survive being killed, and leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.opensearch import server
from deploy.opensearch.java import JavaNotFoundError, find_java
from deploy.opensearch.node import NO_PROXY, is_free
from deploy.opensearch.releases import HERE, NEWER, OLDER
from tests.support.opensearch_server import SERVERS, Cluster, Server, url_of

ROOT = Path(__file__).resolve().parents[3]
VECTORS: dict[str, dict[str, Any]] = {
    "settings": {"index.knn": True, "number_of_shards": 1},
    "mappings": {
        "properties": {
            "vector": {
                "type": "knn_vector",
                "dimension": 2,
                "method": {"name": "hnsw", "engine": "lucene", "space_type": "innerproduct"},
            }
        }
    },
}


def ask(url: str, path: str, body: object = None, method: str = "GET") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data=data, headers=headers, method=method)
    with NO_PROXY.open(request, timeout=30) as answer:
        return json.load(answer)


def fill(url: str, name: str, replicas: int = 0) -> None:
    """An index of two unit vectors at a right angle, the second of which is called "north"."""
    settings = {**VECTORS["settings"], "number_of_replicas": replicas}
    ask(url, f"/{name}", {**VECTORS, "settings": settings}, "PUT")
    for title, vector in (("east", [1, 0]), ("north", [0, 1])):
        ask(url, f"/{name}/_doc/{title}?refresh=true", {"vector": vector}, "PUT")


def nearest(url: str, name: str, vector: list[float]) -> str:
    body = {"query": {"knn": {"vector": {"vector": vector, "k": 1}}}}
    best: str = ask(url, f"/{name}/_search", body, "POST")["hits"]["hits"][0]["_id"]
    return best


@pytest.mark.parametrize("name", SERVERS)
def test_a_shared_server_is_the_release_of_its_name_and_searches_vectors(name: str) -> None:
    url, index = url_of(name), f"servers-{os.getpid()}"
    number = ask(url, "/")["version"]["number"]
    assert number.split(".")[0] == name.rpartition("-")[2]
    fill(url, index)
    try:
        assert nearest(url, index, [0.6, 0.8]) == "north"
    finally:
        ask(url, f"/{index}", method="DELETE")


@pytest.mark.soak("faults")
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_of_a_tests_own_obeys_its_settings_and_keeps_its_data_when_killed(
    name: str,
) -> None:
    with Server(name, {"thread_pool.write.queue_size": "7"}) as server:
        (node,) = ask(server.url, "/_nodes/settings?flat_settings=true")["nodes"].values()
        assert node["settings"]["thread_pool.write.queue_size"] == "7"
        fill(server.url, "kept")
        server.kill()
        with pytest.raises(OSError, match="refused"):
            ask(server.url, "/")
        server.start()
        assert nearest(server.url, "kept", [0.6, 0.8]) == "north"
        folder = server.node.folder
    assert is_free(server.node.port)
    assert not folder.exists()


@pytest.mark.soak("faults")
def test_a_cluster_that_loses_its_manager_elects_another_and_takes_it_back() -> None:
    with Cluster("opensearch-2") as cluster:
        lost = cluster.manager()
        fill(lost.url, "kept", replicas=1)
        cluster.wait("green", nodes=3)
        lost.kill()
        cluster.wait("yellow", nodes=2)
        assert cluster.manager() is not lost
        for server in cluster.nodes:
            if server is not lost:
                assert nearest(server.url, "kept", [0.6, 0.8]) == "north"
        lost.start()
        cluster.wait("green", nodes=3)


STARTS_ONE = """
import time
from tests.support.opensearch_server import Server
with Server("opensearch-2") as server:
    print(server.node.port, flush=True)
    time.sleep(600)
"""


def test_a_server_does_not_outlive_a_test_process_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS_ONE]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = next(int(line) for line in process.stdout if line.strip().isdigit())
        assert not is_free(port)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not is_free(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert is_free(port)


def test_without_an_address_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUARRY_TEST_OPENSEARCH_3", raising=False)
    with pytest.raises(LookupError, match="make opensearch VERSION=3"):
        url_of("opensearch-3")


def test_a_java_that_does_not_fit_is_refused_with_what_was_found() -> None:
    from_another_age = replace(NEWER, java=range(900, 901))
    fitting = find_java(OLDER)
    with pytest.raises(JavaNotFoundError) as refused:
        find_java(from_another_age)
    assert f"{fitting.version} in {fitting.home}" in str(refused.value)


@pytest.mark.parametrize(("code", "expected"), [("exit(0)", 0), ("exit(3)", 3)])
def test_during_passes_on_how_its_command_ended(code: str, expected: int) -> None:
    """With both addresses configured it starts nothing."""
    given = {OLDER.variable: "http://127.0.0.1:1", NEWER.variable: "http://127.0.0.1:2"}
    program = f"import os; assert os.environ['{OLDER.variable}'].endswith(':1'); {code}"
    command = [sys.executable, "-m", "deploy.opensearch.server", "during", sys.executable, "-c"]
    done = subprocess.run([*command, program], cwd=ROOT, env=os.environ | given, check=False)
    assert done.returncode == expected


RUNS_AS_A_NODE = """
import sys, time
from pathlib import Path
from deploy.opensearch.node import lock_folder
lock_folder(Path(sys.argv[1]), "http://127.0.0.1:1")
print("locked", flush=True)
time.sleep(600)
"""


@pytest.fixture
def nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Processes that hold the folders of running nodes, by the names of these."""
    monkeypatch.setattr(server, "SERVERS", tmp_path)
    with ExitStack() as stack:
        started = {}
        for name in ("2/node-1", "2x3/node-1", "3/node-1"):
            (tmp_path / name).mkdir(parents=True)
            command = [sys.executable, "-c", RUNS_AS_A_NODE, str(tmp_path / name)]
            node = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            started[name] = stack.enter_context(node)
            stack.callback(node.kill)
            assert node.stdout is not None
            assert node.stdout.readline() == "locked\n"
        yield started


@pytest.mark.parametrize(
    ("options", "stopped"),
    [
        ([], {"2/node-1", "2x3/node-1", "3/node-1"}),
        (["--version", "2"], {"2/node-1", "2x3/node-1"}),
        (["--version", "3"], {"3/node-1"}),
    ],
)
def test_stop_ends_the_servers_of_the_release_that_is_named_or_all(
    nodes: dict[str, subprocess.Popen[str]],
    options: list[str],
    stopped: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["server", "stop", *options])
    assert server.main() == 0
    for name in stopped:
        assert nodes[name].wait(30) == -signal.SIGTERM
    assert {name for name, node in nodes.items() if node.poll() is None} == nodes.keys() - stopped


@pytest.mark.parametrize(
    ("given", "options"), [([], ""), (["VERSION=2"], "--version 2"), (["VERSION=3"], "--version 3")]
)
def test_make_passes_on_the_version_that_was_given(given: list[str], options: str) -> None:
    outer = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}  # of the make that runs the tests
    planned = subprocess.run(
        ["make", "--dry-run", "opensearch-stop", *given],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in outer},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert planned.stdout.strip().endswith(f"deploy.opensearch.server stop {options}".strip())


def test_a_release_that_the_environment_names_a_server_of_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("deploy.opensearch.software.CACHE", tmp_path)
    monkeypatch.setattr(server, "find_java", lambda _: pytest.fail("it looks for Java"))
    monkeypatch.setattr(sys, "argv", ["server", "install", "--version", "2"])
    monkeypatch.setenv(OLDER.variable, "http://127.0.0.1:1")
    assert server.main() == 0
    assert list(tmp_path.iterdir()) == []


def test_the_releases_are_the_same_wherever_they_are_named() -> None:
    for release in (OLDER, NEWER):
        assert f"<version>{release.number}</version>" in release.pom.read_text(encoding="utf-8")
    services = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {service["image"].partition(":")[2] for service in services.values()} == {NEWER.number}


def test_compose_asks_for_a_password_and_publishes_on_loopback_only() -> None:
    services = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))["services"]
    password = services["opensearch"]["environment"]["OPENSEARCH_INITIAL_ADMIN_PASSWORD"]
    assert password.startswith("${OPENSEARCH_INITIAL_ADMIN_PASSWORD:?")
    ports = [port for service in services.values() for port in service["ports"]]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)
