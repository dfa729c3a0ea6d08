"""`quarry serve --host 0.0.0.0`: over TLS, and behind a proxy that speaks it."""

import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from tests.support.accounts import PASSWORD
from tests.support.home import QUARRY, Home

NAME = "quarry.example.com"
URL = f"https://{NAME}"


@contextmanager
def _serving(home: Home, *arguments: str, **settings: str) -> Iterator[tuple[str, int]]:
    """The set-up link that a new server prints, and its port."""
    process = subprocess.Popen(
        [str(QUARRY), "serve", "--host", "0.0.0.0", "--port", "0", *arguments],
        env=home.environment(PYTHONUNBUFFERED="1", QUARRY_PUBLIC_URL=URL, **settings),
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
        yield link[0], int(port[1])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def _make_account(client: httpx.Client, link: str, **headers: str) -> httpx.Response:
    code = link.partition("code=")[2]
    form = {"code": code, "name": "Ann", "email": "ann@example.com", "password": PASSWORD}
    return client.post("/invitation", data=form, headers={"origin": URL, **headers})


@pytest.mark.parametrize(
    "arguments", [(), pytest.param(("--processes", "2"), marks=pytest.mark.soak("faults"))]
)
def test_over_tls(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    authority, home = trustme.CA(), Home(tmp_path)
    issued = authority.issue_cert("127.0.0.1", NAME)
    issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    files = {
        "QUARRY_TLS_CERTIFICATE": str(tmp_path / "certificate.pem"),
        "QUARRY_TLS_KEY": str(tmp_path / "key.pem"),
    }
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    with _serving(home, *arguments, **files) as (link, port):
        with httpx.Client(
            base_url=f"https://127.0.0.1:{port}", verify=trusted, timeout=60
        ) as client:
            assert client.get("/healthz").status_code == 200
            assert client.get("/sign-in").status_code == 421
            client.headers["host"] = NAME
            made = _make_account(client, link)
            assert made.status_code == 303
            assert made.headers["set-cookie"].startswith("__Host-quarry-session=")
            assert _make_account(client, link).status_code == 404
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60)


def test_behind_a_proxy(tmp_path: Path) -> None:
    """Whose word on where a request comes from is believed, and nobody else's."""
    home = Home(tmp_path)
    proxied = {"QUARRY_TLS_TERMINATED": "true", "QUARRY_TRUSTED_PROXIES": "127.0.0.1"}
    with _serving(home, **proxied) as (link, port):
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, headers={"host": NAME}, timeout=60) as client:
            forwarded = {"X-Forwarded-For": "6.6.6.6, 203.0.113.9", "X-Forwarded-Proto": "https"}
            assert _make_account(client, link, **forwarded).status_code == 303
    (signed_in, *_) = home.quarry("audit", "--json").json
    assert (signed_in["action"], signed_in["address"]) == ("sign_in", "203.0.113.9")


def test_who_is_no_trusted_proxy_is_not_believed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with _serving(home, QUARRY_TLS_TERMINATED="true", QUARRY_TRUSTED_PROXIES="10.0.0.1") as served:
        link, port = served
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"host": NAME}, timeout=60
        ) as client:
            made = _make_account(client, link, **{"X-Forwarded-For": "203.0.113.9"})
            assert made.status_code == 303
    (signed_in, *_) = home.quarry("audit", "--json").json
    assert signed_in["address"] == "127.0.0.1"
