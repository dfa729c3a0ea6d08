"""Services with state that answer over HTTP, and what tests have go wrong with them."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.support.services.serving import ReceivedRequest, Reply, reply_json, reply_text


class FaultyService(ABC):
    """One of them: `running(GitHub(...))`. Tests change it between requests."""

    def __init__(self) -> None:
        self.clock_offset = timedelta()
        """Of its clock before this machine's."""
        self.requests_before_fault = 0
        """So many requests are answered as ever before the trouble."""
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
        return self._headed(request, reply)

    @abstractmethod
    def _answer(self, request: ReceivedRequest) -> Reply:
        """As ever."""

    def _headed(self, request: ReceivedRequest, reply: Reply) -> Reply:
        """With what every answer says."""
        del request
        date = f"{self.now:%a, %d %b %Y %H:%M:%S} GMT"
        return replace(reply, headers={"Date": date, **reply.headers})

    def _page_passed(self) -> None:
        """To be called once a page of a list was made."""
        then, self.after_first_page = self.after_first_page, _nothing
        then()


class Once:
    """As `Troubled.trouble`: the answer to one request alone."""

    def __init__(self, instead: Reply) -> None:
        self._instead: Reply | None = instead

    def __call__(self, reply: Reply) -> Reply:
        instead, self._instead = self._instead, None
        return instead or reply


def garble_reply(how: str, reply: Reply) -> Reply:
    """In one of the ways of `Garbles.garblings`."""
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
