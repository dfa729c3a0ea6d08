"""Reading and decompressing a body without exceeding its size limit."""

import zlib
from collections.abc import Callable
from typing import TypeAlias

import httpx

from connectors.http_client.response import MalformedResponse, ResponseTooLarge, redact_url

ACCEPT_ENCODING = "gzip, deflate"

_GZIP_OR_ZLIB = 47
_RAW_DEFLATE = -15
_GZIP_MAGIC = b"\x1f"
"""What follows the end of a gzip member and does not begin so is padding."""

Decode: TypeAlias = Callable[[bytes, int], bytes]
"""Decodes some bytes to at most one byte more than the given number."""


def read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """Read the whole body.

    Raises:
        ResponseTooLarge: it is longer than `max_bytes`, before or after decompression. Reading stops
            there.
        MalformedResponse: it has an encoding that was not asked for, or is not encoded correctly.
        httpx.TransportError: the connection ended or timed out.
    """
    url = response.request.url
    if _content_length(response) > max_bytes and response.request.method != "HEAD":
        raise _too_large(url, max_bytes)
    body, received = bytearray(), 0
    encoding = response.headers.get("content-encoding", "")
    decode: Decode | None = None
    for data in response.iter_raw():
        decode = decode or _choose_decoder(encoding, url)
        received += len(data)
        body += decode(data, max_bytes - len(body))
        if max(received, len(body)) > max_bytes:
            raise _too_large(url, max_bytes)
    if isinstance(decode, Decompressor):
        decode.finish()
    return bytes(body)


def _content_length(response: httpx.Response) -> int:
    text = response.headers.get("content-length", "")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _too_large(url: httpx.URL, max_bytes: int) -> ResponseTooLarge:
    return ResponseTooLarge(f"{redact_url(url)} is larger than {max_bytes / 1024 / 1024:.1f} MiB")


def _choose_decoder(encoding: str, url: httpx.URL) -> Decode:
    match encoding.strip().lower():
        case "" | "identity":
            return _decode_identity
        case "gzip" | "x-gzip" | "deflate":
            return Decompressor(url)
        case other:
            raise MalformedResponse(f"{redact_url(url)} has an unknown content encoding: {other}")


def _decode_identity(data: bytes, max_bytes: int) -> bytes:
    return data[: max_bytes + 1]


class Decompressor:
    """Decodes gzip (of one or several members), zlib, and raw deflate."""

    def __init__(self, url: httpx.URL) -> None:
        self._url = url
        self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._started = False

    def __call__(self, data: bytes, max_bytes: int) -> bytes:
        body = b""
        while data and len(body) <= max_bytes:
            if self._member.eof:
                if not data.startswith(_GZIP_MAGIC):
                    break
                self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
            body += self._decompress(data, max_bytes + 1 - len(body))
            data = self._member.unused_data
        return body

    def finish(self) -> None:
        """Raise MalformedResponse if the data ended early."""
        if not self._member.eof:
            raise self._failure("it is cut off")

    def _decompress(self, data: bytes, max_bytes: int) -> bytes:
        try:
            return self._member.decompress(data, max_bytes)
        except zlib.error as error:
            if self._started:
                raise self._failure(str(error)) from error
            self._member = zlib.decompressobj(_RAW_DEFLATE)
        finally:
            self._started = True
        return self._decompress(data, max_bytes)

    def _failure(self, reason: str) -> MalformedResponse:
        return MalformedResponse(f"{redact_url(self._url)} cannot be decompressed: {reason}")
