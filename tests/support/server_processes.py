"""The processes of one `quarry serve --processes 2`, each reached by itself."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.serving import Serving

SOON = 60.0
"""Seconds that nothing takes on any machine that works."""
SERVERS = ("server 1", "server 2")


def wait_for(happened: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def wait_until_reached(goal: int, count: Callable[[], int]) -> None:
    """Wait for so many, as long as there are more and more of them."""
    seen, end = count(), time.monotonic() + SOON
    while seen < goal:
        assert time.monotonic() < end, f"{seen} of {goal}"
        time.sleep(0.05)
        if (found := count()) > seen:
            seen, end = found, time.monotonic() + SOON


def find_processes(server: Serving) -> dict[str, int]:
    """The numbers of the latest processes by name."""
    found = re.findall(r'"message": "([a-z0-9 ]+): process (\d+)"', "".join(server.log))
    return {name: int(number) for name, number in found}


def find_accepting(server: Serving) -> set[str]:
    """The servers that answer, each asked while the other one is held."""
    return {name for name in SERVERS if is_accepting(server, name)}


def is_accepting(server: Serving, name: str) -> bool:
    with only(server, name), httpx.Client(base_url=server.url, timeout=2) as client:
        try:
            return client.get("/readyz").status_code == 200
        except httpx.TimeoutException:
            return False


@contextmanager
def only(server: Serving, name: str) -> Iterator[None]:
    """Let new connections be accepted by this process alone: the other one is held meanwhile."""
    (other,) = set(SERVERS) - {name}
    held = find_processes(server)[other]
    os.kill(held, signal.SIGSTOP)
    try:
        wait_for(lambda: find_state(held) == "T")
        yield
    finally:
        os.kill(held, signal.SIGCONT)


@contextmanager
def client_of(server: Serving, name: str) -> Iterator[httpx.Client]:
    """A connection to one of the processes, which both go on to serve theirs."""
    with connect(server) as client:
        with only(server, name):
            client.get("/healthz").raise_for_status()
        yield client


def connect(server: Serving) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=SOON, headers=server.authorization)


def find_state(process: int) -> str | None:
    """The letter of proc(5), such as T for a process that is held; None if there is none."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return status.rpartition(")")[2].split()[0]
