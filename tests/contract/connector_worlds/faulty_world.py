"""The faults of a world whose service is a `FaultyService`."""

from abc import abstractmethod
from collections.abc import Callable
from datetime import timedelta

from tests.contract.connector_worlds.world import Expires, Garbles, Limits, Skews, World
from tests.support.services.faulty_service import FaultyService, garble_reply
from tests.support.services.serving import Reply


class FaultyWorld(World, Skews, Limits, Expires, Garbles):
    wait = timedelta(minutes=20)
    garblings = ("html", "cut", "another shape", "empty")
    _service: FaultyService

    @abstractmethod
    def _rate_limit_reply(self) -> Reply:
        """Return the reply that asks to wait for `wait`."""

    @abstractmethod
    def _invalid_credential_reply(self) -> Reply:
        """Return the reply to an invalid credential."""

    def skew(self, by: timedelta) -> None:
        self._service.clock_offset = by

    def limit(self, after: int) -> None:
        reply = self._rate_limit_reply()
        self._inject_fault(after, lambda _: reply)

    def relent(self) -> None:
        self._service.fault = None

    def expire(self, after: int) -> None:
        reply = self._invalid_credential_reply()
        self._inject_fault(after, lambda _: reply)

    def renew(self) -> None:
        self._service.fault = None

    def garble(self, how: str, after: int) -> None:
        self._inject_fault(after, lambda reply: garble_reply(how, reply))

    def mend(self) -> None:
        self._service.fault = None

    def _inject_fault(self, after: int, how: Callable[[Reply], Reply]) -> None:
        self._service.requests_before_fault, self._service.fault = after, how
