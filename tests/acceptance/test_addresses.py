"""No trick leads into the network that Quarry stands in: an inner server hears nothing at all.

The outer server stands for the internet. It has an address of its own on this machine, the only one
that the client may reach; the inner server has the usual one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from pytest_socket import socket_allow_hosts

from connectors.http_client.address_guard import AddressNotAllowedError, parse_allowed_networks
from connectors.http_client.client import WebClient
from connectors.http_client.pagination import iterate_linked_pages
from connectors.http_client.request import Authorization, RequestLimits
from connectors.http_client.response import MalformedResponse
from connectors.http_client.retry_policy import RetryPolicy
from tests.support.services.serving import ReceivedRequest, Reply, RunningService, reply_text, serve

pytestmark = pytest.mark.smoke

OUTER, INNER = "127.0.0.2", "127.0.0.1"

NAMES = {
    "outer.example": [OUTER],
    "inner.example": [INNER],
    "both.example": [OUTER, INNER],
    "both-ways.example": [INNER, OUTER],
    "mapped.example": [f"::ffff:{INNER}"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "cloud.example": ["169.254.169.254"],
    "localhost": ["::1", INNER],
}

WAYS_IN = [
    # As it is, and by names
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST.:{port}/",
    "http://inner.example:{port}/",
    "http://both.example:{port}/",
    "http://both-ways.example:{port}/",
    "http://mapped.example:{port}/",
    "http://nat64.example:{port}/",
    # One number, octal, hexadecimal, fewer parts, leading zeros
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0x7f000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0x7f.0x0.0x0.0x1:{port}/",
    "http://0x7f.1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.000.000.001:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    # Other letters
    "http://１２７.０.０.１:{port}/",
    "http://127。0。0。1:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://ｌｏｃａｌｈｏｓｔ:{port}/",
    "http://127%2E0%2E0%2E1:{port}/",
    # IPv6 forms
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[0:0:0:0:0:ffff:7f00:0001]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:7f00:1::80ff:fffe]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    # Credentials and characters that parsers read differently
    "http://user:word@127.0.0.1:{port}/",
    "http://outer.example@127.0.0.1:{port}/",
    "http://outer.example:80@127.0.0.1:{port}/",
    "http://outer.example%40127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@outer.example/",
    "http://outer.example\\@127.0.0.1:{port}/",
    "http://outer.example#@127.0.0.1:{port}/@",
    "http:127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}\\",
    # Clouds
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "http://cloud.example/computeMetadata/v1/",
    "http://2852039166/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
    # Other schemes
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "ftp://127.0.0.1:{port}/",
    "dict://127.0.0.1:{port}/",
    "data:text/plain,inner",
    "unix:///run/docker.sock",
    # TLS
    "https://127.0.0.1:{port}/",
    "https://inner.example:{port}/",
]

LEADS_OUTSIDE = {"http://outer.example#@127.0.0.1:{port}/@"}
"""All behind the `#` is a fragment: this one is the outer server, on its usual port."""


@pytest.fixture(autouse=True)
def _two_addresses_of_this_machine() -> None:
    socket_allow_hosts([OUTER, INNER])


@dataclass(frozen=True)
class World:
    outer: RunningService
    inner: RunningService
    client: WebClient
    answers: dict[str, Callable[[ReceivedRequest], Reply]]
    """What the outer server says, by path; a test fills it."""

    def url(self, trick: str) -> str:
        return trick.replace("{port}", str(self.inner.port))


def _resolve(host: str, port: int) -> Sequence[str]:
    del port
    return NAMES[host]


@pytest.fixture
def world() -> Iterator[World]:
    answers: dict[str, Callable[[ReceivedRequest], Reply]] = {"/": lambda _: reply_text("outer")}
    with (
        serve(lambda _: reply_text("inner"), host=INNER) as inner,
        serve(lambda request: answers[request.path](request), host=OUTER) as outer,
        WebClient(
            allowed_networks=parse_allowed_networks([OUTER]),
            resolver=_resolve,
            retry_policy=RetryPolicy(max_attempts=1),
        ) as client,
    ):
        yield World(outer, inner, client, answers)


def _moved(location: str, status: int = 302) -> Callable[[ReceivedRequest], Reply]:
    # A header's bytes are Latin-1 by default; browsers and httpx read UTF-8 in it as well.
    raw = location.encode("utf-8").decode("latin-1")
    return lambda _: Reply(status=status, headers={"Location": raw})


def test_both_servers_answer_whom_may_reach_them(world: World) -> None:
    assert world.client.get(world.outer.url).text == "outer"
    assert world.client.get(f"http://outer.example:{world.outer.port}/").text == "outer"
    with WebClient(allowed_networks=parse_allowed_networks([INNER])) as client:
        assert client.get(world.inner.url).text == "inner"
    assert (len(world.inner.connections), len(world.inner.log)) == (1, 1)


@pytest.mark.parametrize("trick", [way for way in WAYS_IN if way not in LEADS_OUTSIDE])
def test_no_spelling_leads_inside(world: World, trick: str) -> None:
    with pytest.raises(AddressNotAllowedError):
        world.client.get(world.url(trick))
    assert world.inner.connections == []


@pytest.mark.parametrize("trick", [way for way in WAYS_IN if way not in LEADS_OUTSIDE])
def test_no_redirect_leads_inside(world: World, trick: str) -> None:
    for status in (301, 302, 303, 307, 308):
        world.answers["/away"] = _moved(world.url(trick), status)
        with pytest.raises(AddressNotAllowedError):
            world.client.get(f"{world.outer.url}/away")
    assert world.inner.connections == []
    assert len(world.outer.log) == 5


def test_nothing_behind_a_hash_is_a_host(world: World) -> None:
    (trick,) = LEADS_OUTSIDE
    here = trick.replace("outer.example", f"outer.example:{world.outer.port}")
    world.answers["/away"] = _moved(world.url(here))
    assert world.client.get(world.url(here)).text == "outer"
    assert world.client.get(f"{world.outer.url}/away").text == "outer"
    assert world.inner.connections == []


def test_the_last_of_many_redirects_is_checked_as_the_first(world: World) -> None:
    for number in range(9):
        world.answers[f"/{number}"] = _moved(f"/{number + 1}")
    world.answers["/9"] = _moved(world.inner.url)
    with pytest.raises(AddressNotAllowedError):
        world.client.get(f"{world.outer.url}/0")
    assert len(world.outer.log) == 10
    assert world.inner.connections == []


def test_a_name_that_changes_its_address_between_two_looks(world: World) -> None:
    """The first look is at the outer server, any later one would be at the inner."""
    looks: list[str] = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        del port
        looks.append(host)
        return [OUTER] if len(looks) == 1 else [INNER]

    world.answers["/last"] = lambda _: Reply(body=iter([b"and goodbye"]))
    with WebClient(allowed_networks=parse_allowed_networks([OUTER]), resolver=rebinding) as client:
        # What is checked is what is connected to: there is no second look.
        url = f"http://rebinding.example:{world.outer.port}"
        assert client.get(f"{url}/").text == "outer"
        assert client.get(f"{url}/last").text == "and goodbye"
        assert len(looks) == 1
        # The server ended the connection; a new one needs a new look, and a new check.
        with pytest.raises(AddressNotAllowedError):
            client.get(f"http://rebinding.example:{world.inner.port}/")
        with pytest.raises(AddressNotAllowedError):
            client.get(f"{url}/")
    assert looks == ["rebinding.example"] * 3
    assert world.inner.connections == []


def test_no_answer_of_a_resolver_is_trusted_for_being_first(world: World) -> None:
    answers = iter([[OUTER, "::1"], [OUTER, "10.0.0.1"], ["fe80::1%lo"], ["inner.example"]])
    with WebClient(
        allowed_networks=parse_allowed_networks([OUTER]), resolver=lambda *_: next(answers)
    ) as client:
        for _ in range(4):
            with pytest.raises(AddressNotAllowedError):
                client.get(f"http://name.example:{world.outer.port}/")
    assert world.outer.connections == []


def test_a_next_page_does_not_lead_inside(world: World) -> None:
    for target in (world.inner.url, f"http://inner.example:{world.inner.port}/", "http://0x7f.1/"):
        link = {"Link": f'<{target}>; rel="next"'}
        world.answers["/pages"] = lambda _, link=link: Reply(headers=link)  # type: ignore[misc]
        with pytest.raises((AddressNotAllowedError, MalformedResponse)):
            list(iterate_linked_pages(world.client, f"{world.outer.url}/pages"))
    assert world.inner.connections == []


def test_a_credential_opens_no_way_in(world: World) -> None:
    world.answers["/away"] = _moved(world.inner.url)
    for origin in (world.outer.url, world.inner.url):
        world.client.set_authorization(Authorization.bearer(origin, "word"))
        with pytest.raises(AddressNotAllowedError):
            world.client.get(f"{world.outer.url}/away")
    assert world.inner.connections == []


def test_no_environment_opens_a_way_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, world.inner.url)
    assert world.client.get(world.outer.url).text == "outer"
    assert world.inner.connections == []


def test_a_redirect_that_is_not_followed_is_no_fetch(world: World) -> None:
    world.answers["/away"] = _moved(world.inner.url)
    answer = world.client.get(f"{world.outer.url}/away", limits=RequestLimits(max_redirects=0))
    assert answer.headers["location"] == world.inner.url
    assert world.inner.connections == []


def test_what_is_allowed_opens_no_more_than_itself(world: World) -> None:
    """A host by its name, and not the same address by another name or by number."""
    with WebClient(
        allowed_networks=parse_allowed_networks(["inner.example"]), resolver=_resolve
    ) as client:
        assert client.get(f"http://inner.example:{world.inner.port}/").text == "inner"
        seen = len(world.inner.connections)
        for host in ("127.0.0.1", "localhost", "both.example", "mapped.example"):
            with pytest.raises(AddressNotAllowedError):
                client.get(f"http://{host}:{world.inner.port}/")
        assert len(world.inner.connections) == seen


def test_nothing_allows_a_clouds_own_addresses(world: World) -> None:
    everything = parse_allowed_networks(["0.0.0.0/0", "::/0", "cloud.example"])
    with WebClient(allowed_networks=everything, resolver=_resolve) as client:
        assert client.get(world.inner.url).text == "inner"
        for url in (
            "http://169.254.169.254/latest/meta-data/",
            "http://cloud.example/latest/meta-data/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://[2002:a9fe:a9fe::]/",
        ):
            with pytest.raises(AddressNotAllowedError, match="cloud"):
                client.get(url)
