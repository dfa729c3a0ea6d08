"""An OpenID provider that others wrote, `oidc-provider-mock`, in a process of its own.

Any name signs in there. What is stored of a person stands in the ID token, also in place of what the program states
itself, so that it signs whatever a test wants to have signed. Its tokens name no key.
"""

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

import httpx

from backend.access.openid.provider import ProviderSettings

_PROGRAM = (sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port")


@dataclass(frozen=True)
class ProviderProgram:
    issuer: str

    @property
    def port(self) -> int:
        port = urlsplit(self.issuer).port
        assert port is not None
        return port

    def register(self, redirect_uri: str) -> ProviderSettings:
        """Register Quarry as a client."""
        client = {
            "redirect_uris": [redirect_uri],
            "token_endpoint_auth_method": "client_secret_basic",
        }
        answer = httpx.post(f"{self.issuer}/oauth2/clients", json=client).raise_for_status().json()
        return ProviderSettings(
            issuer=self.issuer,
            client_id=answer["client_id"],
            client_secret=answer["client_secret"],
        )

    def put(self, subject: str, **claims: object) -> None:
        """Store a person with these claims and no others."""
        httpx.put(f"{self.issuer}/users/{subject}", json=claims).raise_for_status()

    def enter(self, url: str, subject: str) -> str:
        """Fill in the form to which a browser was led, and return where it leads."""
        return httpx.post(url, data={"sub": subject}).headers["location"]


@contextmanager
def provider_program(port: int = 0) -> Iterator[ProviderProgram]:
    """Start it, with a key of its own and nobody in it; port 0 picks a free one."""
    environment = os.environ | {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*_PROGRAM, str(port)], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    address: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process.stderr, address))
    reader.start()
    try:
        yield ProviderProgram(address.get(timeout=60))
    finally:
        process.kill()
        process.wait()
        reader.join()


def _read_lines(lines: IO[str], address: "queue.SimpleQueue[str]") -> None:
    """It says where it is once it listens. What it says later is read too, or it would wait for that."""
    with lines:
        for line in lines:
            if found := re.search(r"running on (http://\S+)", line):
                address.put(found[1])
