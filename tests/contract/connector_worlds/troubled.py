"""What may happen to a world whose service is a `Troubled` one."""

from abc import abstractmethod
from collections.abc import Callable
from datetime import timedelta

from tests.contract.connector_worlds.world import Expires, Garbles, Limits, Skews, World
from tests.support.services.serving import Reply
from tests.support.services.troubled import Troubled, garbled


class TroubledWorld(World, Skews, Limits, Expires, Garbles):
    wait = timedelta(minutes=20)
    garblings = ("html", "cut", "another shape", "empty")
    _service: Troubled

    @abstractmethod
    def _limited(self) -> Reply:
        """That one is to wait for `wait`."""

    @abstractmethod
    def _ended(self) -> Reply:
        """That the credential is not taken."""

    def skew(self, by: timedelta) -> None:
        self._service.ahead = by

    def limit(self, after: int) -> None:
        reply = self._limited()
        self._trouble(after, lambda _: reply)

    def relent(self) -> None:
        self._service.trouble = None

    def expire(self, after: int) -> None:
        reply = self._ended()
        self._trouble(after, lambda _: reply)

    def renew(self) -> None:
        self._service.trouble = None

    def garble(self, how: str, after: int) -> None:
        self._trouble(after, lambda reply: garbled(how, reply))

    def mend(self) -> None:
        self._service.trouble = None

    def _trouble(self, after: int, how: Callable[[Reply], Reply]) -> None:
        self._service.left, self._service.trouble = after, how
