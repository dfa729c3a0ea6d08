"""Uploads across restarts: a server that is killed while files wait to be read loses none of them, and reads none twice."""

import random
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import Home
from tests.support.server_processes import SOON, wait_for
from tests.support.serving import Serving, serving
from tests.support.soak import scaled

FILES = "/api/files"
AT_ONCE = 20
ROUNDS = scaled(1, 8, "faults")
"""Servers that are killed, each with twenty uploads more."""


@pytest.mark.deep("faults")
def test_a_killed_server_loses_and_doubles_no_upload(tmp_path: Path) -> None:
    home = Home(tmp_path)
    chance, taken = random.Random(16), list[str]()
    for number in range(ROUNDS):
        with serving(home) as server:
            taken += [_upload(server, f"{number}-{one}") for one in range(AT_ONCE)]
            assert "reading" in {one["status"] for one in _list(server)}
            time.sleep(chance.uniform(0, 2))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(SOON)
    with serving(home) as server:
        _wait_until_read(server)
        files = _list(server)
        assert sorted(one["id"] for one in files) == sorted(taken)
        statuses = Counter(one["status"] for one in files)
        assert statuses == {"ready": len(taken)}, [one["problem"] for one in files]
        for one in files[: 2 * AT_ONCE]:
            assert _count_found(server, one) == 1


def _upload(server: Serving, name: str) -> str:
    text = f"# Memo {name}\n\nThe memo {name} says where Nantmoor lies. " + "It is a quay. " * 200
    sent = server.client.post(FILES, files={"file": (f"{name}.md", text.encode())})
    assert sent.status_code == 202, sent.text
    found: str = sent.json()["id"]
    return found


def _list(server: Serving) -> list[Any]:
    found: list[Any] = server.client.get(FILES).json()["files"]
    return found


def _wait_until_read(server: Serving) -> None:
    """Each is read in a process of its own, which takes a busy machine long: wait as long as there are fewer and fewer."""
    while left := _count_waiting(server):
        wait_for(partial(_has_fewer, server, left))


def _has_fewer(server: Serving, left: int) -> bool:
    return _count_waiting(server) < left


def _count_waiting(server: Serving) -> int:
    return sum(one["status"] == "reading" for one in _list(server))


def _count_found(server: Serving, file: Any) -> int:
    """Return how often a search finds it."""
    name = file["name"].removesuffix(".md")
    found = server.client.post("/api/search", json={"query": f'"Memo {name}"', "limit": 50})
    assert found.status_code == 200, found.text
    return sum(one["document_id"] == file["document_id"] for one in found.json()["results"])
