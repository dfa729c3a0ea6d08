"""Requests to the proxy: what is understood in one way only is passed on, everything else refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.browser.proxy_requests import (
    Exchange,
    RefusedRequestError,
    Tunnel,
    parse_head,
    read_credentials,
    read_target,
)


def _target(head: bytes) -> Tunnel | Exchange:
    return read_target(parse_head(head))


@pytest.mark.parametrize(
    ("asked", "host", "port"),
    [
        (b"example.com:443", "example.com", 443),
        (b"Example.COM.:80", "example.com", 80),
        (b"[2606:2800:220:1::1]:443", "2606:2800:220:1::1", 443),
        (b"93.184.216.34:443", "93.184.216.34", 443),
    ],
)
def test_a_tunnel_leads_to_a_host_and_a_port_of_the_web(asked: bytes, host: str, port: int) -> None:
    assert _target(b"CONNECT " + asked + b" HTTP/1.1") == Tunnel(host, port)


@pytest.mark.parametrize(
    "asked",
    [
        *(b"example.com:%d" % port for port in (0, 22, 25, 8080, 6379, 65_536, 99_999)),
        *(b"example.com", b"example.com:", b":443", b"user@example.com:443", b"::1:443"),
        *(b"http://example.com:443", b"example.com:443/", b"2130706433:443", b"0x7f.1:443"),
        *(b"127.1:443", b"0177.0.0.1:443", b"[fe80::1%25eth0]:443", b"exa%6dple.com:443"),
    ],
)
def test_other_tunnels_are_refused(asked: bytes) -> None:
    with pytest.raises(RefusedRequestError):
        _target(b"CONNECT " + asked + b" HTTP/1.1")


def test_a_request_is_written_anew_from_what_was_understood() -> None:
    head = b"\r\n".join(
        [
            b"POST http://example.com/a?b=1 HTTP/1.1",
            b"Host: intranet.test",
            b"Proxy-Authorization: Basic eDp5",
            b"Proxy-Connection: keep-alive",
            b"Connection: keep-alive, X-Hop",
            b"X-Hop: 1",
            b"Upgrade: h2c",
            b"Accept: */*",
            b"Content-Length: 3",
        ]
    )
    exchange = _target(head)
    assert isinstance(exchange, Exchange)
    assert (exchange.host, exchange.port, exchange.body_bytes) == ("example.com", 80, 3)
    assert exchange.head.split(b"\r\n") == [
        b"POST /a?b=1 HTTP/1.1",
        b"Host: example.com",
        b"accept: */*",
        b"content-length: 3",
        b"Connection: close",
        b"",
        b"",
    ]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: example.com",
        b"GET https://example.com/ HTTP/1.1",
        b"GET ftp://example.com/ HTTP/1.1",
        b"GET file:///etc/passwd HTTP/1.1",
        b"GET http://example.com:8080/ HTTP/1.1",
        b"GET http://example.com:22/ HTTP/1.1",
        b"GET http://user:pass@example.com/ HTTP/1.1",
        b"GET http://2130706433/ HTTP/1.1",
        b"GET http://example.com/ HTTP/1.0",
        b"GET http://example.com/ HTTP/1.1 HTTP/1.1",
        b"GET http://example.com/\x00 HTTP/1.1",
        b"get http://example.com/ HTTP/1.1",
        b"GET  http://example.com/ HTTP/1.1",
        b"GET http://example.com/ HTTP/1.1\nX: 1",
        b"GET http://example.com/ HTTP/1.1\r\nX : 1",
        b"GET http://example.com/ HTTP/1.1\r\n X: folded",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\nY: b",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\rY: b",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\x00",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: +1",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1, 1",
        b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"GET http://example.com/ HTTP/1.1" + b"\r\nX: 1" * 201,
    ],
)
def test_what_could_be_read_in_two_ways_or_leads_elsewhere_is_refused(head: bytes) -> None:
    with pytest.raises(RefusedRequestError):
        _target(head)


def test_credentials_are_read_where_they_are_stated_once() -> None:
    stated = b"\r\nProxy-Authorization: Basic " + base64.b64encode(b"name:pass:word")
    assert read_credentials(parse_head(b"CONNECT a.test:443 HTTP/1.1" + stated)) == (
        "name",
        "pass:word",
    )
    for other in (b"", stated * 2, b"\r\nProxy-Authorization: Basic ?", b"\r\nProxy-Authorization: Bearer x"):  # fmt: skip
        assert read_credentials(parse_head(b"CONNECT a.test:443 HTTP/1.1" + other)) is None


_PARTS = st.sampled_from(
    [
        *(b"GET", b"CONNECT", b" ", b"http://", b"//", b"a.test", b"127.0.0.1", b"[::1]", b":80"),
        *(b":22", b":443", b"@", b"/", b"\\", b"#", b"?", b"%", b" HTTP/1.1", b"\r\n", b"\n"),
        *(b"\r", b"\t", b"Host: b.test", b"Content-Length: 1", b"\x00", b"\xff"),
    ]
)


@given(st.lists(_PARTS | st.binary(max_size=3), max_size=14).map(b"".join))
def test_whatever_is_sent_is_refused_or_leads_to_one_host_on_a_port_of_the_web(data: bytes) -> None:
    try:
        target = _target(data)
    except RefusedRequestError:
        return
    assert target.port in {80, 443}
    assert not set(target.host) & set(" \r\n\t@/\\#?%")
    if isinstance(target, Exchange):
        lines = target.head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        assert [line for line in lines if b"\r" in line or b"\n" in line] == []
        assert [line for line in lines if line.lower().startswith(b"host:")] == [lines[1]]
