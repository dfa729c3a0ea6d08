"""How many modules of the product a user's action passes through at run time.

    .venv/bin/python -m tests.benchmarks.modules_passed [--list]

Each action runs in a process of its own in a fresh home, and every function of `backend`,
`connectors` and `indexing` that is called is counted, in all threads; what runs while a module is
imported is not. Modules that both requests pass are what every request passes (who asks, whether they
may, whose turn it is); the rest is the action's own. The bar is what is wanted; the command exits
with 1 if an action passes more than its limit, which is lowered as modules are merged. A server
is asked for something else first, and given time for what it does by itself soon after its start, such as looking for uploads to read.
`--list` names the modules.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.models import MODEL_CACHE
from tests.support.serving import authorization

DOCUMENTS = {
    "warranty.md": "# Warranty\n\nA used scanner has a warranty of six months.\n",
    "travel.md": "# Travel\n\nTravel abroad is approved by the head of the department.\n",
}
SETTLED_SECONDS = 2.0
"""After which a server that was asked something does no more by itself."""
QUESTION = "How long is the warranty on a used scanner?"


@dataclass(frozen=True)
class Action:
    name: str
    bar: int
    limit: int
    arguments: tuple[str, ...] = ()
    """Of the command; of none the action is a request to `quarry serve`."""
    path: str = ""
    body: Mapping[str, str] | None = field(default=None, hash=False)


ACTIONS = (
    Action("quarry search", 34, 34, ("search", QUESTION)),
    Action("quarry ask, no model", 45, 45, ("ask", QUESTION)),
    Action("quarry sync, one new file", 64, 64, ("sync", "docs")),
    Action("quarry sources pause", 8, 8, ("sources", "pause", "docs")),
    Action("POST /api/search", 36, 52, path="/api/search", body={"query": QUESTION}),
    Action("POST …/pause", 8, 23, path="/api/admin/sources/docs/pause", body={}),
)


def measure(home: Path, action: Action) -> list[str]:
    target = home / "called.json"
    if action.arguments:
        _run(_child(target, action.arguments), home)
    else:
        _request(home, action, target)
    functions: list[str] = json.loads(target.read_text(encoding="utf-8"))
    target.unlink()
    return sorted({name.partition(":")[0] for name in functions})


def _run(child: Sequence[str], home: Path) -> None:
    subprocess.run(child, env=_environment(home), stdout=subprocess.DEVNULL, check=True)


def _request(home: Path, action: Action, target: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        _child(target, ("serve", "--port", str(port))),
        env=_environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(base_url=address, timeout=30) as client:
            _wait_until_ready(client)
            client.get("/healthz")
            secret = authorization(home / "state")
            client.get("/api/admin/sources", headers=secret).raise_for_status()
            time.sleep(SETTLED_SECONDS)
            server.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
            answer = client.post(action.path, json=action.body, headers=secret)
            server.send_signal(signal.SIGUSR2)
            assert answer.is_success, answer.text
            while not target.exists():
                time.sleep(0.05)
    finally:
        server.terminate()
        server.wait(30)


def _wait_until_ready(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if client.get("/readyz").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise TimeoutError("quarry serve is not ready after 60 s")


def _child(target: Path, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "tests.support.call_recorder", str(target), *arguments]


def _environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "QUARRY_HOME": str(home / "state"),
        "QUARRY_MODELS": str(MODEL_CACHE),
        "QUARRY_WORKERS": "false",
    }


def prepare(home: Path) -> None:
    """Index two documents and leave a third to be synced."""
    docs = home / "docs"
    docs.mkdir()
    for name, text in DOCUMENTS.items():
        (docs / name).write_text(text, encoding="utf-8")
    for arguments in (("add", "folder", str(docs), "--name", "docs"), ("sync",)):
        _run(_child(home / "ignored.json", arguments), home)
    (docs / "new.md").write_text("# Leave\n\nThere are twenty days of leave.\n", encoding="utf-8")


def warm_up() -> None:
    """Search once: the first search with a model measures its languages and stores the result beside it."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        _run(_child(Path(folder) / "ignored.json", ("search", QUESTION)), Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the modules")
    options = parser.parse_args()
    warm_up()
    passed = {}
    for action in ACTIONS:
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            passed[action] = measure(Path(folder), action)
        if options.list:
            print(action.name, *passed[action], sep="\n  ")
    print(*_tabulate(passed), sep="\n")
    sys.exit(any(len(modules) > action.limit for action, modules in passed.items()))


def _tabulate(passed: Mapping[Action, Sequence[str]]) -> Iterator[str]:
    requests = [set(modules) for action, modules in passed.items() if action.path]
    shared = set.intersection(*requests)
    yield "| action | modules | its own | limit | bar |"
    yield "|---|---|---|---|---|"
    for action, modules in passed.items():
        own = len(set(modules) - shared) if action.path else len(modules)
        yield f"| {action.name} | {len(modules)} | {own} | {action.limit} | {action.bar} |"


if __name__ == "__main__":
    main()
