import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from http.cookiejar import CookieJar

import pytest

from connectors.http_client.client import WebClient
from connectors.http_client.request import RequestLimits
from connectors.http_client.response import (
    ClientError,
    MalformedResponse,
    NotAuthorizedError,
    RateLimitedError,
    ServerError,
    ServiceUnavailableError,
)
from connectors.http_client.retry_policy import RetryPolicy
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import (
    Hangup,
    ReceivedRequest,
    Reply,
    ScriptedHandler,
    echo,
    reply_json,
    reply_text,
    serve,
)

HASTY = RetryPolicy(max_attempts=4, base_delay=0.01)


@pytest.fixture
def client() -> Iterator[WebClient]:
    with WebClient(allowed_networks=LOOPBACK, retry_policy=HASTY) as client:
        yield client


# What is sent


def test_a_request_has_a_user_agent(client: WebClient) -> None:
    with serve(echo) as service:
        sent = client.get(f"{service.url}/a", headers={"Accept": "text/html"}).json_object()
    assert sent["headers"]["user-agent"].startswith("Quarry/")
    assert sent["headers"]["accept"] == "text/html"
    assert sent["headers"]["accept-encoding"] == "gzip, deflate"
    assert "cookie" not in sent["headers"]


def test_params_are_added_to_the_query(client: WebClient) -> None:
    with serve(echo) as service:
        answer = client.get(f"{service.url}/a?x=1", params={"y": 2, "z": ["ä", "&"]})
    assert answer.json_object()["query"] == {"x": ["1"], "y": ["2"], "z": ["ä", "&"]}


def test_bodies_are_json_or_a_form(client: WebClient) -> None:
    with serve(echo) as service:
        as_json = client.post(service.url, json={"q": "ä"}).json_object()
        as_form = client.query(service.url, form={"q": "a b"}).json_object()
        empty = client.post(service.url).json_object()
    assert (as_json["body"], as_json["headers"]["content-type"]) == (
        '{"q": "\\u00e4"}',
        "application/json",
    )
    assert (as_form["body"], as_form["method"]) == ("q=a+b", "POST")
    assert empty["body"] == ""


def test_head_brings_no_body(client: WebClient) -> None:
    with serve(lambda _: reply_text("x" * 100, headers={"Content-Encoding": "gzip"})) as service:
        answer = client.head(service.url, limits=RequestLimits(max_bytes=10))
    assert (answer.body, answer.headers["content-length"]) == (b"", "100")


# What is answered


def test_an_answer_reads_as_text_and_json(client: WebClient) -> None:
    latin = Reply(headers={"Content-Type": "Text/Plain; charset=latin-1"}, body=b"\xe4")
    unknown = Reply(headers={"Content-Type": "text/plain; charset=klingon"}, body="ä".encode())
    strict = Reply(headers={"Content-Type": "text/plain; charset=idna"}, body=b"\xe4b")
    name = Reply(headers={"Content-Type": "text/plain; charset=punycode"}, body=b"abc-ba")
    replies = [latin, unknown, Reply(body=b"\xff"), strict, name, reply_json([1])]
    with serve(ScriptedHandler(replies)) as service:
        answer = client.get(service.url)
        assert (answer.text, answer.media_type) == ("ä", "text/plain")
        assert client.get(service.url).text == "ä"
        assert client.get(service.url).text == "\ufffd"
        assert client.get(service.url).text == "\ufffdb"
        assert client.get(service.url).text == "abc-ba"
        assert client.get(service.url).json_list() == [1]


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": ', b"\xff\xfe", b"[" * 100_000])
def test_json_that_is_none_is_malformed(client: WebClient, body: bytes) -> None:
    with serve(lambda _: Reply(body=body)) as service:
        answer = client.get(f"{service.url}/x?key=secret")
    with pytest.raises(MalformedResponse, match="JSON") as malformed:
        answer.json()
    assert "secret" not in str(malformed.value)


def test_json_of_another_shape_is_malformed(client: WebClient) -> None:
    with serve(ScriptedHandler([reply_json([1]), reply_json({"a": 1})])) as service:
        a_list, an_object = client.get(service.url), client.get(service.url)
    with pytest.raises(MalformedResponse, match="list"):
        a_list.json_object()
    with pytest.raises(MalformedResponse, match="dict"):
        an_object.json_list()


@pytest.mark.parametrize("status", [404, 410])
def test_gone_is_an_answer(client: WebClient, status: int) -> None:
    with serve(lambda _: Reply(status=status)) as service:
        assert client.get(service.url).not_found
        assert len(service.log) == 1


def test_unchanged_is_an_answer(client: WebClient) -> None:
    with serve(lambda _: Reply(status=304, headers={"ETag": '"1"'})) as service:
        answer = client.get(service.url, headers={"If-None-Match": '"1"'})
        assert (answer.status, answer.headers["etag"]) == (304, '"1"')
        assert service.log[0].headers["if-none-match"] == '"1"'


@pytest.mark.parametrize("status", [401, 403])
def test_no_access_is_for_the_owner(client: WebClient, status: int) -> None:
    with serve(lambda _: reply_json({"why": "expired"}, status=status)) as service:
        with pytest.raises(NotAuthorizedError) as refused:
            client.get(service.url)
        assert len(service.log) == 1
    assert refused.value.response.json() == {"why": "expired"}


@pytest.mark.parametrize("status", [400, 409, 422, 451, 501])
def test_a_rejected_request_is_not_retried(client: WebClient, status: int) -> None:
    with serve(lambda _: Reply(status=status, body=b"why")) as service:
        with pytest.raises(ClientError) as rejected:
            client.get(service.url)
        assert len(service.log) == 1
    assert (rejected.value.response.status, rejected.value.response.body) == (status, b"why")


# Trying again


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=500),
        Reply(status=502),
        Reply(status=503),
        Reply(status=504),
        Reply(status=521),
        Reply(status=408),
        Reply(status=429, headers={"Retry-After": "0"}),
        Hangup(),
        # Ten bytes are promised, three come.
        Reply(headers={"Content-Length": "10", "Connection": "close"}, body=b"abc"),
    ],
    ids=repr,
)
def test_a_temporary_failure_is_retried(client: WebClient, trouble: Reply | Hangup) -> None:
    with serve(ScriptedHandler([trouble, trouble, reply_text("at last")])) as service:
        assert client.get(service.url).text == "at last"
        assert len(service.log) == 3


def test_a_lasting_failure_is_left_to_a_later_run(client: WebClient) -> None:
    with serve(lambda _: Reply(status=503)) as service:
        with pytest.raises(ServerError, match="503") as later:
            client.get(service.url)
        assert len(service.log) == HASTY.max_attempts
    assert later.value.retry_after == timedelta(seconds=60)


def test_a_server_that_is_not_there_is_left_for_later(client: WebClient) -> None:
    with serve(echo) as service:
        pass
    with pytest.raises(ServiceUnavailableError, match="does not respond") as later:
        client.get(f"{service.url}/a?key=secret")
    assert not isinstance(later.value, ServerError)
    assert "secret" not in str(later.value)


def test_a_post_that_may_have_been_done_is_not_repeated(client: WebClient) -> None:
    for trouble in (Reply(status=500), Hangup()):
        with serve(ScriptedHandler([trouble, reply_text("doubled")])) as service:
            with pytest.raises(ServiceUnavailableError):
                client.post(service.url, json=1)
            assert len(service.log) == 1


def test_a_post_that_has_not_been_done_is_repeated(client: WebClient) -> None:
    limited = Reply(status=429, headers={"Retry-After": "0"})
    with serve(ScriptedHandler([limited, reply_text("done")])) as service:
        assert client.post(service.url, json=1).text == "done"
        assert [request.body for request in service.log] == [b"1", b"1"]


def test_a_question_in_a_post_is_repeated(client: WebClient) -> None:
    with serve(ScriptedHandler([Reply(status=500), Hangup(), reply_text("known")])) as service:
        assert client.query(service.url, json={"query": "{}"}).text == "known"
        assert [request.body for request in service.log] == [b'{"query": "{}"}'] * 3


def test_a_short_wait_is_slept(client: WebClient) -> None:
    limited = Reply(status=429, headers={"Retry-After": "0.4"})
    with serve(ScriptedHandler([limited, reply_text("now")])) as service:
        assert client.get(service.url).text == "now"
        first, second = service.log
        assert second.at - first.at >= 0.4


def test_a_long_wait_is_left_to_the_caller_exactly(client: WebClient) -> None:
    limited = Reply(status=429, headers={"Retry-After": "3601"})
    with serve(lambda _: limited) as service:
        with pytest.raises(RateLimitedError, match="3601 s") as later:
            client.get(service.url)
        assert len(service.log) == 1
    assert later.value.retry_after == timedelta(seconds=3601)


def test_a_source_reads_the_rate_limits_of_its_service() -> None:
    with (
        serve(lambda _: Reply(status=403)) as service,
        WebClient(
            allowed_networks=LOOPBACK, read_rate_limit=lambda _: timedelta(minutes=30)
        ) as client,
        pytest.raises(RateLimitedError) as later,
    ):
        client.get(service.url)
    assert later.value.retry_after == timedelta(minutes=30)


def test_short_waits_add_up_to_a_bound() -> None:
    limited = Reply(status=429, headers={"Retry-After": "0.2"})
    patience = RetryPolicy(max_attempts=100, base_delay=0.0, max_total_delay=0.5)
    with (
        serve(lambda _: limited) as service,
        WebClient(allowed_networks=LOOPBACK, retry_policy=patience) as client,
    ):
        with pytest.raises(RateLimitedError) as later:
            client.get(service.url)
        # 0.2 + 0.2 are slept; a third wait would make 0.6.
        assert len(service.log) == 3
    assert later.value.retry_after == timedelta(seconds=0.2)


def test_a_wait_can_be_cancelled(client: WebClient) -> None:
    limited = Reply(status=429, headers={"Retry-After": "9"})
    with serve(lambda _: limited) as service:
        timer = threading.Timer(0.2, client.cancel)
        timer.start()
        began = time.monotonic()
        with pytest.raises(RateLimitedError):
            client.get(service.url)
        assert time.monotonic() - began < 8
        assert len(service.log) == 1
        timer.join()


def test_a_request_that_runs_is_broken_off(client: WebClient) -> None:
    arrived, released = threading.Event(), threading.Event()

    def hang(_: ReceivedRequest) -> Reply:
        arrived.set()
        released.wait(20)
        return reply_text("late")

    def abort() -> None:
        arrived.wait(20)
        client.abort()

    with serve(hang) as service:
        aborts = threading.Thread(target=abort)
        aborts.start()
        try:
            with pytest.raises(ServiceUnavailableError):
                client.get(service.url)
            assert not released.is_set()
            with pytest.raises(ServiceUnavailableError):
                client.get(service.url)
            assert len(service.log) == 1
        finally:
            released.set()
            aborts.join()


def test_a_body_that_is_broken_off_is_not_taken_for_whole(client: WebClient) -> None:
    sent, released = threading.Event(), threading.Event()

    def dribble() -> Iterator[bytes]:
        yield b"first part, "
        sent.set()
        released.wait(20)

    def abort() -> None:
        sent.wait(20)
        client.abort()

    with serve(lambda _: Reply(body=dribble())) as service:
        aborts = threading.Thread(target=abort)
        aborts.start()
        try:
            with pytest.raises(ServiceUnavailableError):
                client.get(service.url)
        finally:
            released.set()
            aborts.join()


# Cookies and the environment


def _cookie(request: ReceivedRequest) -> Reply:
    return reply_json(request.headers.get("cookie"), headers={"Set-Cookie": "s=1; Path=/"})


def test_no_cookie_is_kept_without_a_jar(client: WebClient) -> None:
    with serve(_cookie) as service:
        assert [client.get(service.url).json() for _ in range(2)] == [None, None]
        with WebClient(allowed_networks=LOOPBACK, cookies=CookieJar()) as keeping:
            assert [keeping.get(service.url).json() for _ in range(2)] == [None, "s=1"]


def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(lambda _: reply_text("proxy")) as proxy, serve(echo) as service:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        with WebClient(allowed_networks=LOOPBACK) as client:
            assert client.get(service.url).json_object()["method"] == "GET"
        assert proxy.log == []


def test_connections_are_kept(client: WebClient) -> None:
    with serve(echo) as service:
        for _ in range(20):
            client.get(service.url)
        assert len(service.connections) == 1


def test_threads_may_share_a_client(client: WebClient) -> None:
    found: list[int] = []

    def ask(start: int) -> None:
        for n in range(start, 100, 4):
            answer = client.get(service.url, params={"n": n}).json()
            found.append(int(answer))

    with serve(lambda request: reply_json(request.param("n"))) as service:
        threads = [threading.Thread(target=ask, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(found) == list(range(100))
