"""Nothing within the network is asked, whatever address is given: shown in the internal server's own log."""

import socket
from collections.abc import Iterator

import pytest

from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from backend.web_search.results import UnreadablePage
from connectors.http_client.address_guard import PUBLIC_ONLY, parse_allowed_networks
from indexing.runtime.deadline import Deadline
from tests.support.local_web import FIRST_REBINDING_ADDRESS, LocalWeb, local_web

_SOON = 5.0
_TRICKS = (
    "http://127.0.0.1:{port}/secret",
    "http://127.1:{port}/secret",
    "http://2130706433:{port}/secret",
    "http://0x7f000001:{port}/secret",
    "http://0x7f.0.0.1:{port}/secret",
    "http://0177.0.0.1:{port}/secret",
    "http://017700000001:{port}/secret",
    "http://127.0.0.1.:{port}/secret",
    "http://0:{port}/secret",
    "http://0.0.0.0:{port}/secret",
    "http://[::1]:{port}/secret",
    "http://[::]:{port}/secret",
    "http://[::ffff:127.0.0.1]:{port}/secret",
    "http://[::ffff:7f00:1]:{port}/secret",
    "http://[::127.0.0.1]:{port}/secret",
    "http://[64:ff9b::7f00:1]:{port}/secret",
    "http://[2002:7f00:1::]:{port}/secret",
    "http://localhost:{port}/secret",
    "http://LOCALHOST.:{port}/secret",
    "http://internal.test:{port}/secret",
    "http://internal.test.:{port}/secret",
    "http://INTERNAL.TEST:{port}/secret",
    "http://internal%2etest:{port}/secret",
    "http://news.test@127.0.0.1:{port}/secret",
    "http://news.test:80@internal.test:{port}/secret",
    "http://news.test\\@127.0.0.1:{port}/secret",
    "http://127.0.0.1:{port}#@news.test/secret",
    "http://①②⑦.0.0.1:{port}/secret",
    "http://127。0。0。1:{port}/secret",
    "http:127.0.0.1:{port}/secret",
    "http:///127.0.0.1:{port}/secret",
    "//127.0.0.1:{port}/secret",
    "127.0.0.1:{port}/secret",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "file:///etc/passwd",
    "ftp://127.0.0.1:{port}/secret",
    "gopher://127.0.0.1:{port}/_GET%20/secret",
    "javascript:alert(1)",
    "data:text/html,<p>secret</p>",
    "view-source:http://127.0.0.1:{port}/secret",
    "",
    " ",
    "http://",
    "http://[",
    "http://news.test:99999/",
    "http://news.test:22/",
    "http://news.test:6379/",
    "http://news.test\r\nHost: internal.test/",
)


@pytest.fixture(scope="module")
def web() -> Iterator[LocalWeb]:
    with local_web() as served:
        yield served


@pytest.mark.parametrize("address", _TRICKS)
def test_no_address_leads_within(address: str, web: LocalWeb) -> None:
    reader = PageReader(PageFetcher(web.allowed, web.resolve))
    url = address.replace("{port}", str(web.internal_port))
    outcome = reader.read(url, Deadline.after(_SOON))
    assert isinstance(outcome, UnreadablePage)
    assert "not on the public web" in outcome.reason or "does not exist" in outcome.reason
    assert web.internal_requests == []


def test_a_name_that_turns_inward_is_looked_up_once_a_connection(web: LocalWeb) -> None:
    """Its first address, where nobody listens, is allowed here; a second look-up before the connection would lead within."""
    allowed = parse_allowed_networks([FIRST_REBINDING_ADDRESS])
    reader = PageReader(PageFetcher(allowed, web.resolve))
    url = f"http://rebind.test:{web.internal_port}/secret"
    first = reader.read(url, Deadline.after(_SOON))
    assert isinstance(first, UnreadablePage)
    assert "does not respond" in first.reason
    assert web.lookups.count("rebind.test") == 1
    second = reader.read(url, Deadline.after(_SOON))
    assert isinstance(second, UnreadablePage)
    assert "not on the public web" in second.reason
    assert web.internal_requests == []


def test_one_address_within_closes_a_name(web: LocalWeb) -> None:
    reader = PageReader(PageFetcher(PUBLIC_ONLY, lambda *_: ["203.0.114.7", "127.0.0.1"]))
    outcome = reader.read(f"http://both.test:{web.internal_port}/secret", Deadline.after(_SOON))
    assert isinstance(outcome, UnreadablePage)
    assert web.internal_requests == []


def test_no_sentence_names_an_address_within_or_what_a_query_says(web: LocalWeb) -> None:
    reader = PageReader(PageFetcher(web.allowed, web.resolve))
    for path in ("/moved/private", "/status/404", "/status/500", "/files/sea.png", "/gone"):
        outcome = reader.read(web.url(f"{path}?token=hush"), Deadline.after(_SOON))
        assert isinstance(outcome, UnreadablePage)
        assert "hush" not in outcome.reason
        assert "127.0.0.1" not in outcome.reason
        assert "internal.test" not in outcome.reason
        assert outcome.reason.startswith(("news.test", "There is no page", "What news.test"))


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (socket.gaierror(socket.EAI_NONAME, "not known"), "nowhere.test"),
        (OSError("no address"), "nowhere.test"),
        (socket.gaierror(socket.EAI_AGAIN, "no name server answers"), ""),
        (TimeoutError("the look-up takes too long"), ""),
    ],
)
def test_a_name_without_an_address_is_told_from_one_that_is_not_looked_up_now(
    error: OSError, unknown: str
) -> None:
    def fail(host: str, port: int) -> list[str]:
        del host, port
        raise error

    reader = PageReader(PageFetcher(PUBLIC_ONLY, fail))
    outcome = reader.read("http://nowhere.test/a?b=c", Deadline.after(_SOON))
    assert isinstance(outcome, UnreadablePage)
    assert outcome.unknown_host == unknown
    assert ("does not exist" in outcome.reason) == bool(unknown)
