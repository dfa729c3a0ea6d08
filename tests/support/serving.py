"""`quarry serve` as a process of its own, and what it streams."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trustme

from backend.access.machine_secret import read_machine_secret
from backend.cli.link import make_link
from tests.support.home import QUARRY, Home

_SECRETS: dict[str, Path] = {}
"""The file with the secret of each server of this process, by its address."""
_SECRET = "machine.secret"
START_SECONDS = 90.0
"""A machine that does much else at once is slow to start anything."""


@dataclass(frozen=True)
class Event:
    id: int
    name: str
    data: dict[str, Any]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Server-sent events, as a browser reads them; comments are passed over."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


@dataclass(frozen=True)
class Serving:
    process: subprocess.Popen[str]
    url: str
    link: str
    """Lets a browser in; empty where there are accounts."""
    authorization: dict[str, str]
    """The header that lets a program in; `client` sends it."""
    client: httpx.Client
    log: list[str]
    """Lines of standard error so far."""

    def stop(self, number: int = signal.SIGINT) -> tuple[int, float]:
        """The exit code, and the seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(30), time.monotonic() - began

    @property
    def resident(self) -> int:
        """Bytes, of all its processes; pages that they share count for each."""
        statuses = (_read_of(each, "status") for each in list_processes(self.process.pid))
        found = (re.search(r"VmRSS:\s+(\d+) kB", status) for status in statuses)
        return sum(int(match[1]) * 1024 for match in found if match)

    @property
    def processor_seconds(self) -> float:
        """Of all its processes so far, in user and system mode."""
        stats = (_read_of(each, "stat") for each in list_processes(self.process.pid))
        times = [stat.rpartition(")")[2].split()[11:13] for stat in stats if stat]
        return sum(int(ticks) for each in times for ticks in each) / os.sysconf("SC_CLK_TCK")


def list_processes(server: int) -> list[int]:
    """Return the id of the process of a server, and of those that it and they have started."""
    threads = Path(f"/proc/{server}/task").glob("*/children")
    children = (int(one) for thread in threads for one in thread.read_text("ascii").split())
    return [server, *(each for child in children for each in list_processes(child))]


def _read_of(process: int, name: str) -> str:
    """Return what /proc says of a process; nothing once it has ended."""
    try:
        return Path(f"/proc/{process}/{name}").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


@contextmanager
def serving(home: Home, *arguments: str, **settings: str) -> Iterator[Serving]:
    """The server on a free port, from the moment that it is ready."""
    environment = home.environment(PYTHONUNBUFFERED="1", **settings)
    process = subprocess.Popen(
        [str(QUARRY), "serve", "--port", "0", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log: list[str] = []
    reader = threading.Thread(target=_read, args=(process, log), daemon=True)
    reader.start()
    try:
        url, link = _address(process, log), _read_link(process)
        _SECRETS[url] = Path(environment["QUARRY_HOME"]) / _SECRET
        secret = authorization(Path(environment["QUARRY_HOME"]))
        with httpx.Client(base_url=url, timeout=60, headers=secret) as client:
            _wait_until_ready(client)
            yield Serving(process, url, link, secret, client, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        reader.join(5)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


PUBLIC_NAME = "quarry.example.com"
PUBLIC_URL = f"https://{PUBLIC_NAME}"


@dataclass(frozen=True)
class PublicServing:
    set_up: str
    """The link by which the first account is made."""
    port: int


@contextmanager
def serving_publicly(home: Home, *arguments: str, **settings: str) -> Iterator[PublicServing]:
    """The server as others reach it, at `PUBLIC_URL`, without any account."""
    process = subprocess.Popen(
        [str(QUARRY), "serve", "--host", "0.0.0.0", "--port", "0", *arguments],
        env=home.environment(PYTHONUNBUFFERED="1", QUARRY_PUBLIC_URL=PUBLIC_URL, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        printed = "".join(process.stdout.readline() for _ in range(4))
        link = re.search(r"https://\S+/invitation\?code=\S+", printed)
        port = re.search(r"listens at 0\.0\.0\.0:(\d+)", printed)
        assert link, printed
        assert port, printed
        yield PublicServing(link[0], int(port[1]))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def issue_certificate(authority: trustme.CA, folder: Path) -> dict[str, str]:
    """The settings with a certificate for the server of `serving_publicly`."""
    issued = authority.issue_cert("127.0.0.1", PUBLIC_NAME)
    issued.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    return {
        "QUARRY_TLS_CERTIFICATE": str(folder / "certificate.pem"),
        "QUARRY_TLS_KEY": str(folder / "key.pem"),
    }


def _read(process: subprocess.Popen[str], log: list[str]) -> None:
    assert process.stderr
    log.extend(iter(process.stderr.readline, ""))


def authorization(home: Path) -> dict[str, str]:
    """The header that programs of the owner send to the server of a home."""
    secret = (home / _SECRET).read_text(encoding="ascii").strip()
    return {"Authorization": f"Bearer {secret}"}


def link_to(url: str) -> str:
    """A new link that lets a browser in to the server at an address; each does so once."""
    return make_link(url, read_machine_secret(_SECRETS[url]))


def _read_link(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    found = re.search(r"http://\S+", process.stdout.readline())
    return found[0] if found else ""


def _address(process: subprocess.Popen[str], log: list[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, (line, log)
    return found[0]


def _wait_until_ready(client: httpx.Client) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        found = client.get("/readyz")
        if found.status_code == 200:
            return
        time.sleep(0.05)
    raise AssertionError(f"not ready: {found.text}")
