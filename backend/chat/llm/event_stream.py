"""Read the server-sent events of a streamed completion."""

from collections.abc import Iterable, Iterator

DONE = "[DONE]"
"""The data of the event that ends a stream."""


def read_event_data(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event; names, ids and comments are skipped.

    Raises:
        UnicodeDecodeError: the data is no UTF-8.
    """
    data: list[bytes] = []
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data).decode()
            data = []
    if data:
        yield b"\n".join(data).decode()


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        # A carriage return at the end of a piece may be half of the end of a line.
        *lines, rest = (rest + piece).splitlines(keepends=True) or [b""]
        yield from (line.rstrip(b"\r\n") for line in lines)
        if rest.endswith(b"\n"):
            yield rest.rstrip(b"\r\n")
            rest = b""
    if rest:
        yield rest.rstrip(b"\r\n")
