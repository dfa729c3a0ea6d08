"""The base of fake services with state, into which tests inject faults."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.support.services.serving import ReceivedRequest, Reply, reply_json, reply_text


class FaultyService(ABC):
    """A fake service: `serve(GitHub(...))`. Tests change it between requests."""

    def __init__(self) -> None:
        self.clock_offset = timedelta()
        """How far its clock is ahead of this machine's."""
        self.requests_before_fault = 0
        """The number of requests that are answered normally before the fault."""
        self.fault: Callable[[Reply], Reply] | None = None
        self.after_first_page: Callable[[], None] = _nothing
        self.after_each: Callable[[], None] = _nothing
        self._lock = threading.Lock()

    @property
    def now(self) -> datetime:
        return (datetime.now(UTC) + self.clock_offset).replace(microsecond=0)

    def __call__(self, request: ReceivedRequest) -> Reply:
        with self._lock:
            reply = self._answer(request)
            if self.fault is not None and self.requests_before_fault <= 0:
                reply = self.fault(reply)
            self.requests_before_fault -= 1
            self.after_each()
        return self._add_headers(request, reply)

    @abstractmethod
    def _answer(self, request: ReceivedRequest) -> Reply:
        """Return the normal reply."""

    def _add_headers(self, request: ReceivedRequest, reply: Reply) -> Reply:
        """Add the headers of every reply."""
        del request
        date = f"{self.now:%a, %d %b %Y %H:%M:%S} GMT"
        return replace(reply, headers={"Date": date, **reply.headers})

    def _page_passed(self) -> None:
        """Run `after_first_page` once; called by subclasses after each page of a list."""
        then, self.after_first_page = self.after_first_page, _nothing
        then()


class Once:
    """A `FaultyService.fault` for one request only."""

    def __init__(self, instead: Reply) -> None:
        self._instead: Reply | None = instead

    def __call__(self, reply: Reply) -> Reply:
        instead, self._instead = self._instead, None
        return instead or reply


def garble_reply(how: str, reply: Reply) -> Reply:
    """Return the reply malformed in one of the ways of `Garbles.garblings`."""
    assert isinstance(reply.body, bytes)
    match how:
        case "html":
            return reply_text("<html><body>Sign in</body></html>", media_type="text/html")
        case "cut":
            return replace(reply, status=200, body=reply.body[: len(reply.body) // 2])
        case "empty":
            return Reply()
        case _:
            return reply_json({"unexpected": True})


def _nothing() -> None:
    return
