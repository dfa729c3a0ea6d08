"""Many changes of records in few requests: bounded bytes, two requests in flight, refusals sorted out.

A cluster that is busy refuses single items of a request; those are sent again, after pauses that grow.
Whatever else is refused ends the write and names the document.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as Unreachable
from opensearchpy.exceptions import SSLError, TransportError

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.opensearch import errors
from indexing.opensearch.naming import written_alias

REQUEST = 5_000_000
"""Bytes of a request; clusters take 10 MB at the least."""
IN_FLIGHT = 2
"""Requests under way at once: while one is written by the cluster the next is put together and sent."""
PARAMETERS = {
    "require_alias": "true",
    "filter_path": "errors,items.*.status,items.*.error,items.*._seq_no,items.*._primary_term",
}
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


@dataclass(frozen=True, slots=True)
class Action:
    """One item of a bulk request."""

    document_id: str
    """Whose record it changes; for messages."""
    lines: bytes
    """The head and, but for a deletion, the body; each with its end of line."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record was written; the state that the next conditional write names."""

    sequence: int
    term: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Not written: the record is not in the state that the write named."""


Outcome: TypeAlias = Stored | Conflict
_Item: TypeAlias = Mapping[str, Any]
Answer = TypeVar("Answer")
Told = TypeVar("Told")


class Bulk:
    """Sends actions to one index. For one thread at a time."""

    def __init__(self, client: OpenSearch, index: str, patience: float) -> None:
        """`patience`: seconds for which a busy cluster is asked again without getting anywhere."""
        self._client = client
        self._alias = written_alias(index)
        self._patience = patience

    def send(self, actions: Iterable[Action]) -> None:
        """Write records whose state does not matter, in any order, each id once.

        What is to be changed or deleted and is not there is left so.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError
        """
        requests = packed(actions, REQUEST)
        first = next(requests, None)
        second = next(requests, None)
        if first is None:
            return
        if second is None:
            self._deliver(first)
            return
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            under_way: set[Future[list[Outcome]]] = set()
            for request in chain((first, second), requests):
                if len(under_way) == IN_FLIGHT:
                    under_way = _less(under_way)
                under_way.add(pool.submit(self._deliver, request))
            while under_way:
                under_way = _less(under_way)

    def send_conditional(self, actions: Sequence[Action]) -> list[Outcome]:
        """Write records on conditions that their actions name; what came of each. Raises as `send`."""
        return [
            outcome for request in packed(actions, REQUEST) for outcome in self._deliver(request)
        ]

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        """What is answered to a request that changes nothing, for which a busy cluster is given time too."""
        return _patiently(ask, Pauses(self._patience))

    def _deliver(self, request: Sequence[Action]) -> list[Outcome]:
        """One request, until every item of it has come to something."""
        outcomes: dict[int, Outcome] = {}
        waiting = list(range(len(request)))
        pauses = Pauses(self._patience)
        while waiting:
            refused: _Item = {}
            left: list[int] = []
            for number, item in zip(waiting, self._post(request, waiting, pauses), strict=True):
                outcome = _outcome(request[number], item)
                if outcome is None:
                    left.append(number)
                    refused = item
                else:
                    outcomes[number] = outcome
            if left:
                if len(left) < len(waiting):
                    pauses = Pauses(self._patience)
                pauses.wait(_named(request[left[0]], refused))
            waiting = left
        return [outcomes[number] for number in range(len(request))]

    def _post(
        self, request: Sequence[Action], wanted: Sequence[int], pauses: "Pauses"
    ) -> list[_Item]:
        body = b"".join(request[number].lines for number in wanted)
        answer = _patiently(
            lambda: self._client.bulk(body=body, index=self._alias, params=PARAMETERS), pauses
        )
        return [next(iter(item.values())) for item in answer["items"]]


def _less(under_way: set[Future[Told]]) -> set[Future[Told]]:
    """What is left once one of them is done, or several are. Raises what those did."""
    done, left = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return left


class Pauses:
    """Between attempts: each twice as long as the one before, give or take a half."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._next = FIRST_PAUSE

    def wait(self, reason: Exception) -> None:
        """Raises `reason` once patience is at its end."""
        pause = self._next * random.uniform(0.5, 1.5)
        if time.monotonic() + pause > self._until:
            raise reason
        time.sleep(pause)
        self._next = min(2 * self._next, LONGEST_PAUSE)


def packed(actions: Iterable[Action], limit: int) -> Iterator[list[Action]]:
    """Groups of at most `limit` bytes; an action that is larger is alone."""
    group: list[Action] = []
    size = 0
    for action in actions:
        if group and size + len(action.lines) > limit:
            yield group
            group, size = [], 0
        group.append(action)
        size += len(action.lines)
    if group:
        yield group


def _patiently(ask: Callable[[], Answer], pauses: Pauses) -> Answer:
    while True:
        try:
            return ask()
        except TemporarilyUnavailableError as error:
            pauses.wait(error)
        except TransportError as error:
            if not _may_pass(error):
                raise
            pauses.wait(errors.named(error))


def _may_pass(error: TransportError) -> bool:
    """Whether the same request may go through a little later."""
    if isinstance(error, SSLError):
        return False
    return isinstance(error, Unreachable) or isinstance(
        errors.named(error), TemporarilyUnavailableError
    )


def _outcome(action: Action, item: _Item) -> Outcome | None:
    """`None`: to be sent again."""
    status = item["status"]
    if "error" not in item and (status < 300 or status == 404):
        return Stored(item.get("_seq_no", -1), item.get("_primary_term", 0))
    if status == 409:
        return Conflict()
    if status == 404 and errors.told(item)[0] == "document_missing_exception":
        return Stored(-1, 0)
    refusal = _named(action, item)
    if isinstance(refusal, TemporarilyUnavailableError):
        return None
    raise refusal


def _named(action: Action, item: _Item) -> TemporarilyUnavailableError | ActionRequiredError:
    """What the refusal of an item means, with its document."""
    refusal = errors.of_refusal(item["status"], *errors.told(item))
    text = f"{action.document_id[:200]}: {refusal}"
    if isinstance(refusal, TemporarilyUnavailableError):
        return TemporarilyUnavailableError(text, refusal.retry_after)
    return ActionRequiredError(text)
