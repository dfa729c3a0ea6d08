"""Nobody but this machine's own pages and programs: names, origins, sizes, headers."""

import pytest
from fastapi.testclient import TestClient

from backend.api.request_guard import HEADERS, MOST_BYTES, is_this_machine
from tests.unit.backend.api.conftest import SOURCE

PROBE = "/api/documents"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8321",
        "127.0.0.1:9000",  # the other end of a tunnel
        "127.8.0.1:8321",
        "localhost",
        "LocalHost:8321",
        "[::1]:8321",
    ],
)
def test_names_of_this_machine_are_answered(client: TestClient, host: str) -> None:
    assert client.get(PROBE, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",  # a name that its owner points to 127.0.0.1
        "evil.example:8321",
        "127.0.0.1.evil.example:8321",
        "localhost.evil.example",
        "evil.localhost:8321",
        "127.0.0.1@evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1:8321:80",
        "127.0.0.1, evil.example",
        "127.1",  # what a browser reads as 127.0.0.1, it sends as 127.0.0.1
        "0x7f.0.0.1",
        "2130706433",
        "0.0.0.0:8321",  # leads here on some systems
        "192.168.1.7:8321",
        "[::]:8321",
        "[::ffff:192.168.1.7]:8321",
        "[evil.example]",
        "localhost:port",
        "localhost:123456",
        "localhost/",
        "",
    ],
)
def test_any_other_name_is_refused_with_the_reason(client: TestClient, host: str) -> None:
    refused = client.get(PROBE, headers={"host": host})
    assert refused.status_code == 421
    assert refused.headers["content-type"] == "application/problem+json"
    assert "DNS rebinding" in refused.json()["detail"]
    assert "127.0.0.1" in refused.json()["advice"]


def test_two_names_are_none(client: TestClient) -> None:
    twice = [("host", "127.0.0.1:8321"), ("host", "evil.example")]
    assert client.get(PROBE, headers=twice).status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://evil.example:8321",
        "https://127.0.0.1:8321",  # another scheme is another origin
        "http://127.0.0.1",
        "http://127.0.0.1:3000",  # another program of this machine, with pages of its own
        "http://localhost:8321",  # as the browser sees it, another site
        "http://127.0.0.1:8321.evil.example",
        "null",  # a file, a sandboxed frame
        "",
    ],
)
@pytest.mark.parametrize(
    "path", ["/api/search", "/api/ask", "/api/sources", f"/api/sources/{SOURCE}/sync"]
)
def test_pages_of_others_change_and_read_nothing(
    client: TestClient, path: str, origin: str
) -> None:
    refused = client.post(path, headers={"origin": origin}, json={})
    assert refused.status_code == 403
    assert "web page" in refused.json()["detail"]


def test_our_own_pages_are_answered(client: TestClient) -> None:
    own = {"origin": "http://127.0.0.1:8321", "sec-fetch-site": "same-origin"}
    assert client.post("/api/search", headers=own, json={"query": "leave"}).status_code == 200
    assert client.get(PROBE, headers={"sec-fetch-site": "none"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_may_link_here_and_nothing_else(
    client: TestClient, site: str
) -> None:
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get(PROBE, headers=link).status_code == 200
    assert client.get(PROBE, headers={**link, "sec-fetch-dest": "iframe"}).status_code == 403
    assert client.get(PROBE, headers={**link, "sec-fetch-mode": "no-cors"}).status_code == 403
    # A form that is sent here is a navigation as well.
    assert client.post("/api/search", headers=link, json={"query": "x"}).status_code == 403


def test_refusals_come_before_any_route(client: TestClient) -> None:
    assert client.get(PROBE, headers={"host": "evil.example"}).status_code == 421
    # What load balancers ask by whatever name, and what tells nothing.
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 200
    assert client.get("/no/such/page", headers={"host": "evil.example"}).status_code == 421


def test_a_long_body_is_refused_by_what_it_says_of_itself(client: TestClient) -> None:
    refused = client.post("/api/search", content=b" " * (MOST_BYTES + 1))
    assert refused.status_code == 413
    assert refused.json()["title"] == "Request Entity Too Large"


def test_a_long_body_is_refused_while_it_comes(client: TestClient) -> None:
    pieces = iter([b" " * 100_000] * 11)
    json_type = {"content-type": "application/json"}
    refused = client.post("/api/search", content=pieces, headers=json_type)
    assert refused.status_code == 413
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/api/documents", "/healthz", "/no/such/page"])
def test_every_answer_says_what_a_browser_may_do_with_it(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert {name: headers[name] for name in HEADERS} == dict(HEADERS)
    assert "access-control-allow-origin" not in headers


def test_an_address_stands_for_itself_and_a_name_does_not() -> None:
    assert is_this_machine("127.0.0.1")
    assert is_this_machine("::1")
    assert not is_this_machine("10.0.0.1")
    assert not is_this_machine("quarry.example")
