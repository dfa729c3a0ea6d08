"""`quarry serve --host 0.0.0.0`: over TLS, and behind a proxy that speaks it."""

import ssl
from pathlib import Path

import httpx
import pytest
import trustme

from tests.support.accounts import PASSWORD
from tests.support.home import Home
from tests.support.serving import PUBLIC_NAME as NAME
from tests.support.serving import PUBLIC_URL as URL
from tests.support.serving import issue_certificate, serving_publicly


def _make_account(client: httpx.Client, link: str, **headers: str) -> httpx.Response:
    code = link.partition("code=")[2]
    form = {"code": code, "name": "Ann", "email": "ann@example.com", "password": PASSWORD}
    return client.post("/invitation", data=form, headers={"origin": URL, **headers})


@pytest.mark.parametrize(
    "arguments", [(), pytest.param(("--processes", "2"), marks=pytest.mark.soak("faults"))]
)
def test_over_tls(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    authority, home = trustme.CA(), Home(tmp_path)
    files = issue_certificate(authority, tmp_path)
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    with serving_publicly(home, *arguments, **files) as served:
        link, port = served.set_up, served.port
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
    with serving_publicly(home, **proxied) as served:
        link, port = served.set_up, served.port
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, headers={"host": NAME}, timeout=60) as client:
            forwarded = {"X-Forwarded-For": "6.6.6.6, 203.0.113.9", "X-Forwarded-Proto": "https"}
            assert _make_account(client, link, **forwarded).status_code == 303
    (signed_in, *_) = home.quarry("audit", "--json").json
    assert (signed_in["action"], signed_in["address"]) == ("sign_in", "203.0.113.9")


def test_who_is_no_trusted_proxy_is_not_believed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    proxied = {"QUARRY_TLS_TERMINATED": "true", "QUARRY_TRUSTED_PROXIES": "10.0.0.1"}
    with serving_publicly(home, **proxied) as served:
        link, port = served.set_up, served.port
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"host": NAME}, timeout=60
        ) as client:
            made = _make_account(client, link, **{"X-Forwarded-For": "203.0.113.9"})
            assert made.status_code == 303
    (signed_in, *_) = home.quarry("audit", "--json").json
    assert signed_in["address"] == "127.0.0.1"
