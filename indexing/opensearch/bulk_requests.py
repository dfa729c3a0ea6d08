"""Sends changes of records in bulk requests of bounded size, two in flight, and retries refused items.

A busy cluster refuses single items of a request; those are sent again after growing pauses. Any other refusal
ends the write and names the document.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as Unreachable
from opensearchpy.exceptions import SSLError, TransportError

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Vectors
from indexing.index.validation import PreparedReplace
from indexing.opensearch import errors
from indexing.opensearch.mapping import Quantisation
from indexing.opensearch.naming import chunk_id, write_alias
from indexing.opensearch.record_mapping import (
    BYTE_SCALE,
    ChunkLabels,
    DocumentRecord,
    Source,
    StoredRecord,
    Version,
    chunk_source,
    document_source,
)
from indexing.opensearch.score_conversion import DIGITS

REQUEST_BYTES = 5_000_000
"""Clusters accept at least 10 MB."""
MAX_IN_FLIGHT = 2
"""While the cluster writes one request, the next one is encoded and sent."""
PARAMETERS = {
    "require_alias": "true",
    "filter_path": "errors,items.*.status,items.*.error,items.*._seq_no,items.*._primary_term",
}
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

_Operation = Literal["index", "create", "update", "delete"]


@dataclass(frozen=True, slots=True)
class BulkAction:
    """One item of a bulk request."""

    document_id: str
    """The document whose record or chunk it changes, for messages."""
    lines: bytes
    """The head and, except for a deletion, the body; each with its line end."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The record was written; the next conditional write names this state."""

    sequence: int
    term: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """The record was not written: it was not in the state that the write named."""


Outcome: TypeAlias = Stored | Conflict
_Item: TypeAlias = Mapping[str, Any]
Response = TypeVar("Response")
Result = TypeVar("Result")


def put_document(record: DocumentRecord, stored: StoredRecord | None) -> BulkAction:
    """Write a record on condition that it is still as `stored`, or that there is none."""
    condition = _condition(stored) if stored else {}
    head = _head("index" if stored else "create", record.key, record.key, condition)
    return BulkAction(record.id, head + _line(document_source(record)))


def delete_document(stored: StoredRecord) -> BulkAction:
    """Delete a record on condition that it is still as `stored`."""
    key = stored.record.key
    return BulkAction(stored.record.id, _head("delete", key, key, _condition(stored)))


def put_chunks(
    record: DocumentRecord, prepared: PreparedReplace, quantisation: Quantisation
) -> Iterator[BulkAction]:
    """Write all chunks of the record's version; each action is encoded when it is requested."""
    for position, vector in enumerate(_encode_vectors(prepared.change.vectors, quantisation)):
        source = chunk_source(record, prepared, position)
        head = _head("index", source["chunk"], record.key, {})
        body = _line(source)[:-2] + b',"vector":' + vector + b"}\n"
        yield BulkAction(record.id, head + body)


def label_chunks(record: DocumentRecord, labels: ChunkLabels) -> Iterator[BulkAction]:
    """Give every chunk of the record's version these labels."""
    body = _line({"doc": labels.to_source()})
    for chunk in _chunk_ids(record.key, record.version):
        yield BulkAction(record.id, _head("update", chunk, record.key, {}) + body)


def delete_chunks(record: DocumentRecord, version: Version) -> Iterator[BulkAction]:
    for chunk in _chunk_ids(record.key, version):
        yield BulkAction(record.id, _head("delete", chunk, record.key, {}))


def _chunk_ids(key: str, version: Version) -> Iterator[str]:
    return (chunk_id(key, version.name, position) for position in range(version.chunks))


def _condition(stored: StoredRecord) -> dict[str, int]:
    return {"if_seq_no": stored.sequence, "if_primary_term": stored.term}


def _head(operation: _Operation, name: str, key: str, condition: dict[str, int]) -> bytes:
    return _line({operation: {"_id": name, "routing": key, **condition}})


def _line(body: Source | dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # A lone surrogate is no character, and would make the whole request invalid.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def _encode_vectors(vectors: Vectors, quantisation: Quantisation) -> Iterator[bytes]:
    """Encode each vector as JSON; seven digits keep a cosine to a ten-millionth."""
    rows: NDArray[np.generic] = (
        np.rint(vectors * BYTE_SCALE).astype(np.int8)
        if quantisation == "byte"
        else np.round(vectors.astype(np.float64), DIGITS)
    )
    for row in np.ascontiguousarray(rows):
        yield orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY)


class BulkClient:
    """Sends actions to one index. For one thread at a time."""

    def __init__(self, client: OpenSearch, index: str, patience: float) -> None:
        """Prepare to write; `patience` is for how many seconds a busy cluster is retried without progress."""
        self._client = client
        self._alias = write_alias(index)
        self._patience = patience

    def send(self, actions: Iterable[BulkAction]) -> None:
        """Write records unconditionally, in any order, each id once.

        A change or deletion of a record that does not exist has no effect.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError
        """
        requests = pack_requests(actions, REQUEST_BYTES)
        first = next(requests, None)
        second = next(requests, None)
        if first is None:
            return
        if second is None:
            self._deliver(first)
            return
        with ThreadPoolExecutor(MAX_IN_FLIGHT) as pool:
            in_flight: set[Future[list[Outcome]]] = set()
            for request in chain((first, second), requests):
                if len(in_flight) == MAX_IN_FLIGHT:
                    in_flight = _wait_for_one(in_flight)
                in_flight.add(pool.submit(self._deliver, request))
            while in_flight:
                in_flight = _wait_for_one(in_flight)

    def send_conditional(self, actions: Sequence[BulkAction]) -> list[Outcome]:
        """Write records on the conditions that their actions name. Raises as `send`."""
        return [
            outcome
            for request in pack_requests(actions, REQUEST_BYTES)
            for outcome in self._deliver(request)
        ]

    def retry_while_busy(self, call: Callable[[], Response]) -> Response:
        """Make a call that changes nothing, and repeat it while the cluster is busy."""
        return _retry_while_busy(call, Backoff(self._patience))

    def _deliver(self, request: Sequence[BulkAction]) -> list[Outcome]:
        """Send one request until each of its items has an outcome."""
        outcomes: dict[int, Outcome] = {}
        waiting = list(range(len(request)))
        backoff = Backoff(self._patience)
        while waiting:
            refused: _Item = {}
            left: list[int] = []
            for number, item in zip(waiting, self._post(request, waiting, backoff), strict=True):
                outcome = _to_outcome(request[number], item)
                if outcome is None:
                    left.append(number)
                    refused = item
                else:
                    outcomes[number] = outcome
            if left:
                if len(left) < len(waiting):
                    backoff = Backoff(self._patience)
                backoff.wait(_to_error(request[left[0]], refused))
            waiting = left
        return [outcomes[number] for number in range(len(request))]

    def _post(
        self, request: Sequence[BulkAction], numbers: Sequence[int], backoff: "Backoff"
    ) -> list[_Item]:
        body = b"".join(request[number].lines for number in numbers)
        response = _retry_while_busy(
            lambda: self._client.bulk(body=body, index=self._alias, params=PARAMETERS), backoff
        )
        return [next(iter(item.values())) for item in response["items"]]


def _wait_for_one(in_flight: set[Future[Result]]) -> set[Future[Result]]:
    """Wait until at least one is done, and return the others. Raises what a done one raised."""
    done, left = wait(in_flight, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return left


class Backoff:
    """Pauses between attempts: each twice as long as the one before, plus or minus half."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._next = FIRST_PAUSE

    def wait(self, reason: Exception) -> None:
        """Sleep, or raise `reason` once the patience is over."""
        pause = self._next * random.uniform(0.5, 1.5)
        if time.monotonic() + pause > self._until:
            raise reason
        time.sleep(pause)
        self._next = min(2 * self._next, LONGEST_PAUSE)


def pack_requests(actions: Iterable[BulkAction], limit: int) -> Iterator[list[BulkAction]]:
    """Group actions into requests of at most `limit` bytes; a larger action gets one of its own."""
    group: list[BulkAction] = []
    size = 0
    for action in actions:
        if group and size + len(action.lines) > limit:
            yield group
            group, size = [], 0
        group.append(action)
        size += len(action.lines)
    if group:
        yield group


def _retry_while_busy(call: Callable[[], Response], backoff: Backoff) -> Response:
    while True:
        try:
            return call()
        except TemporarilyUnavailableError as error:
            backoff.wait(error)
        except TransportError as error:
            if not _is_transient(error):
                raise
            backoff.wait(errors.to_error(error))


def _is_transient(error: TransportError) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, SSLError):
        return False
    return isinstance(error, Unreachable) or isinstance(
        errors.to_error(error), TemporarilyUnavailableError
    )


def _to_outcome(action: BulkAction, item: _Item) -> Outcome | None:
    """Return the outcome of an item, or `None` if it is to be sent again."""
    status = item["status"]
    if "error" not in item and (status < 300 or status == 404):
        return Stored(item.get("_seq_no", -1), item.get("_primary_term", 0))
    if status == 409:
        return Conflict()
    if status == 404 and errors.read_reason(item)[0] == "document_missing_exception":
        return Stored(-1, 0)
    refusal = _to_error(action, item)
    if isinstance(refusal, TemporarilyUnavailableError):
        return None
    raise refusal


def _to_error(action: BulkAction, item: _Item) -> TemporarilyUnavailableError | ActionRequiredError:
    """Return what the refusal of an item means, with the document's id."""
    refusal = errors.refusal_to_error(item["status"], *errors.read_reason(item))
    text = f"{action.document_id[:200]}: {refusal}"
    if isinstance(refusal, TemporarilyUnavailableError):
        return TemporarilyUnavailableError(text, refusal.retry_after)
    return type(refusal)(text)
