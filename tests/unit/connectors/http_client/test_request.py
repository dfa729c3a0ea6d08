import ssl
from collections.abc import Iterator, Mapping

import pytest
import trustme

from connectors.errors import ActionRequiredError
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.client import WebClient
from connectors.http_client.request import Authorization, RequestLimits
from connectors.http_client.response import MalformedResponse
from connectors.http_client.retry_policy import RetryPolicy
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import (
    ReceivedRequest,
    Reply,
    RunningService,
    echo,
    redirect,
    serve,
)


@pytest.fixture
def client() -> Iterator[WebClient]:
    with WebClient(allowed_networks=LOOPBACK, retry_policy=RetryPolicy(max_attempts=1)) as client:
        yield client


# Redirects


def test_redirects_are_followed_to_the_end(client: WebClient) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        number = int(request.path.removeprefix("/"))
        return redirect(f"/{number + 1}?n={number}") if number < 10 else echo(request)

    with serve(answer) as service:
        answered = client.get(f"{service.url}/0", params={"x": 1})
    assert answered.url == f"{service.url}/10?n=9"
    assert answered.json_object()["query"] == {"n": ["9"]}


def test_more_redirects_than_ten_are_too_many(client: WebClient) -> None:
    with serve(lambda _: redirect("/again")) as service:
        with pytest.raises(MalformedResponse, match="more than 10 redirects"):
            client.get(service.url)
        assert len(service.log) == 11


def test_with_none_allowed_a_redirect_is_the_answer(client: WebClient) -> None:
    with serve(lambda _: redirect("/there", 301)) as service:
        answer = client.get(service.url, limits=RequestLimits(max_redirects=0))
    assert (answer.status, answer.headers["location"]) == (301, "/there")


@pytest.mark.parametrize(
    ("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")]
)
def test_what_a_redirect_makes_of_a_post(client: WebClient, status: int, method: str) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        return redirect("/there", status) if request.path == "/here" else echo(request)

    with serve(answer) as service:
        sent = client.post(f"{service.url}/here", json={"a": 1}).json_object()
    assert (sent["method"], sent["body"]) == (method, '{"a": 1}' if method == "POST" else "")
    assert ("content-type" in sent["headers"]) == (method == "POST")


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://user:word@127.0.0.1/",
        "http://2130706433/",
        "//0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1%25lo]/",
        "http://[",
        "http://127.0.0.1:22/",
    ],
)
def test_a_redirect_is_checked_as_the_first_address(client: WebClient, location: str) -> None:
    with serve(lambda _: redirect(location)) as service:
        with pytest.raises(AddressNotAllowedError):
            client.get(service.url)
        assert len(service.log) == 1


# The authorization


@pytest.fixture
def two() -> Iterator[tuple[RunningService, RunningService]]:
    """One that redirects /away to the other, and one that tells what it is sent."""
    with serve(echo) as other:

        def answer(request: ReceivedRequest) -> Reply:
            away = {"/away": 302, "/away307": 307}
            if status := away.get(request.path):
                return redirect(f"{other.url}/landed", status)
            return redirect("/landed") if request.path == "/within" else echo(request)

        with serve(answer) as service:
            yield service, other


def _headers(client: WebClient, url: str, **headers: str) -> Mapping[str, str]:
    found: Mapping[str, str] = client.get(url, headers=headers).json_object()["headers"]
    return found


def _authorized(authorization: Authorization) -> WebClient:
    return WebClient(allowed_networks=LOOPBACK, authorization=authorization)


def test_the_authorization_goes_to_its_origin_only(
    two: tuple[RunningService, RunningService],
) -> None:
    service, other = two
    with _authorized(Authorization.bearer(f"{service.url}/api/", "word")) as client:
        assert _headers(client, f"{service.url}/a")["authorization"] == "Bearer word"
        assert _headers(client, f"{service.url}/within")["authorization"] == "Bearer word"
        assert "authorization" not in _headers(client, f"{service.url}/away")
        assert "authorization" not in _headers(client, other.url)
        # Another name of the same machine is another origin.
        by_name = service.url.replace("127.0.0.1", "localhost")
        assert "authorization" not in _headers(client, by_name)


def test_it_comes_back_with_a_redirect_to_its_origin() -> None:
    with (
        serve(echo) as home,
        serve(lambda _: redirect(f"{home.url}/back")) as other,
        _authorized(Authorization.bearer(home.url, "word")) as client,
    ):
        assert _headers(client, other.url)["authorization"] == "Bearer word"
        assert "authorization" not in other.log[0].headers


def test_headers_of_a_request_stay_with_its_origin(
    client: WebClient, two: tuple[RunningService, RunningService]
) -> None:
    service, other = two
    secret = {"Private-Token": "word", "Authorization": "Basic x", "Cookie": "s=1"}
    plain = {"Accept": "text/html", "If-None-Match": '"1"'}
    client.get(f"{service.url}/away", headers=secret | plain)
    assert service.log[0].headers.items() >= {"private-token": "word", "cookie": "s=1"}.items()
    assert not {"private-token", "authorization", "cookie"} & other.log[0].headers.keys()
    assert other.log[0].headers.items() >= {"accept": "text/html", "if-none-match": '"1"'}.items()


def test_a_body_is_not_sent_on_to_another_origin(
    client: WebClient, two: tuple[RunningService, RunningService]
) -> None:
    service, other = two
    with pytest.raises(AddressNotAllowedError, match="with a body"):
        client.query(f"{service.url}/away307", form={"token": "word"})
    assert other.log == []


def test_a_renewed_token_takes_the_place_of_the_old() -> None:
    with (
        serve(echo) as service,
        _authorized(Authorization.bearer(service.url, "old")) as client,
    ):
        client.set_authorization(Authorization.basic(service.url, "ä@a.example", "x:y"))
        # base64 of "ä@a.example:x:y" in UTF-8
        expected = "Basic w6RAYS5leGFtcGxlOng6eQ=="
        assert _headers(client, service.url)["authorization"] == expected


@pytest.mark.parametrize("token", ["", "word\n", "two\r\nlines", "wörd", "\0", " word", "w  d"])
def test_a_credential_that_cannot_be_sent_is_for_the_owner(token: str) -> None:
    with pytest.raises(ActionRequiredError, match="copy it again") as refused:
        Authorization.bearer("https://a.example", token)
    assert "word" not in str(refused.value)


def test_a_header_that_cannot_be_sent_is_a_mistake(client: WebClient) -> None:
    with serve(echo) as service:
        with pytest.raises(ValueError, match="cannot be sent") as refused:
            client.get(service.url, headers={"X-Key": "word\r\nX-Other: 1"})
        assert service.log == []
    assert "word" not in str(refused.value)


def test_secrets_are_not_shown() -> None:
    assert "word" not in repr(Authorization.bearer("https://a.example", "word"))


@pytest.mark.parametrize(
    "origin", ["", "api.example.com", "ftp://a.example", "https://a@b.example"]
)
def test_an_authorization_needs_an_origin(origin: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        WebClient(authorization=Authorization.bearer(origin, "word"))


@pytest.fixture
def to_http() -> Iterator[tuple[RunningService, RunningService]]:
    """One with TLS that redirects to one without."""
    with serve(echo) as plain, serve(lambda _: redirect(plain.url), tls=_TLS) as secured:
        yield secured, plain


_AUTHORITY = trustme.CA()
_TLS = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
_AUTHORITY.issue_cert("127.0.0.1").configure_cert(_TLS)
_TRUST = ssl.create_default_context()
_AUTHORITY.configure_trust(_TRUST)


def test_a_credential_is_not_led_from_https_to_http(
    to_http: tuple[RunningService, RunningService],
) -> None:
    secured, plain = to_http
    authorization = Authorization.bearer(secured.url, "word")
    with WebClient(allowed_networks=LOOPBACK, ssl_context=_TRUST) as client:
        with pytest.raises(AddressNotAllowedError, match="encrypted"):
            client.get(secured.url, headers={"Private-Token": "word"})
        client.set_authorization(authorization)
        with pytest.raises(AddressNotAllowedError, match="encrypted"):
            client.get(secured.url)
        assert plain.log == []
        assert [request.headers.get("authorization") for request in secured.log] == [
            None,
            "Bearer word",
        ]


def test_what_holds_no_credential_may_be(to_http: tuple[RunningService, RunningService]) -> None:
    secured, plain = to_http
    with WebClient(allowed_networks=LOOPBACK, ssl_context=_TRUST) as client:
        assert client.get(secured.url, headers={"Accept": "text/html"}).url == plain.url
