"""The bytes of an answer, unpacked no further than they may be long."""

import zlib
from collections.abc import Callable
from typing import TypeAlias

import httpx

from connectors.http_client.response import Malformed, TooLarge, spoken

ENCODINGS = "gzip, deflate"
"""What is asked for, and what is understood."""

_GZIP_OR_ZLIB = 47
_BARE_DEFLATE = -15
_GZIP_MAGIC = b"\x1f"
"""What follows the end of a part and does not begin so is padding."""

Unpack: TypeAlias = Callable[[bytes, int], bytes]
"""Some bytes and how many may come of them: what they unpack to, at most one more than that."""


def read_body(response: httpx.Response, most: int) -> bytes:
    """All of it.

    Raises:
        TooLarge: it, or what it unpacks to, is longer than `most` bytes. Reading stops there.
        Malformed: it is packed in a way that was not asked for, or wrongly.
        httpx.TransportError: the connection ended or took too long.
    """
    url = response.request.url
    if _declared(response) > most and response.request.method != "HEAD":
        raise _too_large(url, most)
    body, raw = bytearray(), 0
    packing = response.headers.get("content-encoding", "")
    unpack: Unpack | None = None
    for data in response.iter_raw():
        unpack = unpack or _unpacking(packing, url)
        raw += len(data)
        body += unpack(data, most - len(body))
        if max(raw, len(body)) > most:
            raise _too_large(url, most)
    if isinstance(unpack, Inflation):
        unpack.finish()
    return bytes(body)


def _declared(response: httpx.Response) -> int:
    text = response.headers.get("content-length", "")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _too_large(url: httpx.URL, most: int) -> TooLarge:
    return TooLarge(f"{spoken(url)} is larger than {most / 1024 / 1024:.1f} MiB")


def _unpacking(packing: str, url: httpx.URL) -> Unpack:
    match packing.strip().lower():
        case "" | "identity":
            return _as_it_is
        case "gzip" | "x-gzip" | "deflate":
            return Inflation(url)
        case other:
            raise Malformed(f"{spoken(url)} is packed in a way that was not asked for: {other}")


def _as_it_is(data: bytes, room: int) -> bytes:
    return data[: room + 1]


class Inflation:
    """An `Unpack` of gzip (in one part or several), zlib, and deflate without either's frame."""

    def __init__(self, url: httpx.URL) -> None:
        self._url = url
        self._part = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def __call__(self, data: bytes, room: int) -> bytes:
        body = b""
        while data and len(body) <= room:
            if self._part.eof:
                if not data.startswith(_GZIP_MAGIC):
                    break
                self._part = zlib.decompressobj(_GZIP_OR_ZLIB)
            body += self._inflated(data, room + 1 - len(body))
            data = self._part.unused_data
        return body

    def _inflated(self, data: bytes, most: int) -> bytes:
        try:
            return self._part.decompress(data, most)
        except zlib.error as error:
            if self._begun:
                raise self._fault(str(error)) from error
            self._part = zlib.decompressobj(_BARE_DEFLATE)
        finally:
            self._begun = True
        return self._inflated(data, most)

    def finish(self) -> None:
        if not self._part.eof:
            raise self._fault("it is cut off")

    def _fault(self, reason: str) -> Malformed:
        return Malformed(f"{spoken(self._url)} cannot be unpacked: {reason}")
