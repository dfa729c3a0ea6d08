"""What a browser asks of its proxy, read strictly: what two readers could understand differently is refused."""

import base64
import binascii
import re
from dataclasses import dataclass

from connectors.http_client.address_guard import AddressNotAllowedError, validate_host, validate_url

MAX_HEAD_BYTES = 65_536
END_OF_HEAD = b"\r\n\r\n"

_TUNNEL_PORTS = frozenset({80, 443})
_PLAIN_PORT = 80
_MAX_HEADERS = 200
_REQUEST_LINE = re.compile(rb"([A-Z]{3,16}) ([\x21-\x7e]+) HTTP/1\.1")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_AUTHORITY = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\\%]+):(\d{1,5})")
_OWN_HEADERS = frozenset(
    {b"host", b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"expect"}
)
"""Headers that concern this connection alone, or that are written anew."""


class RefusedRequestError(Exception):
    """The proxy does not carry out a request.

    Attributes:
        status: The status of HTTP that the browser is answered with.
        target: The host and the port to which it would have gone, such as `example.com:443`, where they could be read.
    """

    def __init__(self, status: int, reason: str, target: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.target = target


def name_target(host: str, port: int) -> str:
    return f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A connection that passes bytes both ways (`CONNECT`)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request without TLS, and its response.

    Attributes:
        head: The request line and the headers as they are sent to the host.
        body_bytes: How many bytes follow them.
    """

    host: str
    port: int
    head: bytes
    body_bytes: int


@dataclass(frozen=True, slots=True)
class RequestHead:
    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    """Names in lower case."""

    def find_values(self, name: bytes) -> list[bytes]:
        return [value for each, value in self.headers if each == name]


def parse_head(data: bytes) -> RequestHead:
    """Parse what stands before the blank line, without it.

    Raises:
        RefusedRequestError: it is not a request of HTTP/1.1 to a proxy.
    """
    first, *others = data.split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    headers = [_HEADER.fullmatch(other) for other in others]
    if line is None or len(headers) > _MAX_HEADERS:
        raise RefusedRequestError(400, "the request cannot be read")
    read = tuple((each[1].lower(), each[2].rstrip(b" \t")) for each in headers if each)
    if len(read) < len(headers):
        raise RefusedRequestError(400, "a header cannot be read")
    return RequestHead(method=line[1], target=line[2], headers=read)


def read_credentials(head: RequestHead) -> tuple[str, str] | None:
    """Return the name and the password by which the browser says whose request it is."""
    values = head.find_values(b"proxy-authorization")
    if len(values) != 1 or not values[0].lower().startswith(b"basic "):
        return None
    try:
        decoded = base64.b64decode(values[0][6:].strip(), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, _, password = decoded.partition(":")
    return name, password


def read_target(head: RequestHead) -> Tunnel | Exchange:
    """Return what is asked for.

    Raises:
        RefusedRequestError: it leads to another port than those of the web, or has more than one meaning.
    """
    return _read_tunnel(head) if head.method == b"CONNECT" else _read_exchange(head)


def _read_tunnel(head: RequestHead) -> Tunnel:
    authority = _AUTHORITY.fullmatch(head.target)
    if authority is None:
        raise RefusedRequestError(400, "CONNECT names no host and port")
    port = int(authority[2])
    try:
        host = validate_host(authority[1].decode("ascii").strip("[]"))
    except AddressNotAllowedError as error:
        raise RefusedRequestError(403, "its host is not allowed") from error
    if port not in _TUNNEL_PORTS:
        raise RefusedRequestError(403, "its port is not one of the web", name_target(host, port))
    return Tunnel(host, port)


def _read_exchange(head: RequestHead) -> Exchange:
    try:
        url = validate_url(head.target.decode("ascii"))
    except AddressNotAllowedError as error:
        raise RefusedRequestError(403, "its address is not allowed") from error
    host, port = url.raw_host.decode("ascii"), url.port or _PLAIN_PORT
    if url.scheme != "http" or port != _PLAIN_PORT:
        raise RefusedRequestError(403, "its port is not one of the web", name_target(host, port))
    body_bytes = _read_body_bytes(head)
    lines = [b"%s %s HTTP/1.1" % (head.method, url.raw_path), b"Host: " + url.netloc]
    lines += [b"%s: %s" % header for header in _forwarded_headers(head)]
    lines += [b"Connection: close", b"", b""]
    return Exchange(host, port, b"\r\n".join(lines), body_bytes)


def _read_body_bytes(head: RequestHead) -> int:
    lengths = head.find_values(b"content-length")
    if head.find_values(b"transfer-encoding") or len(lengths) > 1:
        raise RefusedRequestError(400, "the length of its body is not stated once")
    if not lengths:
        return 0
    if not re.fullmatch(rb"[0-9]{1,12}", lengths[0]):
        raise RefusedRequestError(400, "the length of its body cannot be read")
    return int(lengths[0])


def _forwarded_headers(head: RequestHead) -> list[tuple[bytes, bytes]]:
    of_connection = {
        name.strip().lower()
        for value in head.find_values(b"connection")
        for name in value.split(b",")
    } - {b"content-length"}
    return [
        (name, value)
        for name, value in head.headers
        if name not in _OWN_HEADERS | of_connection and not name.startswith(b"proxy-")
    ]
