"""Sends several searches to the cluster in one request, and reads the responses."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any, TypeVar

import orjson
from opensearchpy import OpenSearch, OpenSearchException

from indexing.opensearch import errors
from indexing.opensearch.client import request_timeout
from indexing.opensearch.mapping import Body
from indexing.runtime.deadline import Deadline

SEARCH_SHARE = 0.8
"""Of the remaining time; then a shard returns what it has found so far, and the rest is for reading it."""
KEEP_ALIVE_SECONDS = 5
"""By which a point in time outlives its deadline; usually it is deleted long before."""
MAX_KEEP_ALIVE_SECONDS = 3_600
DELETE_SECONDS = 2.0
"""That deleting a point in time may take. The cluster drops it by itself a little later."""

Key = TypeVar("Key")


class PointInTimeGoneError(Exception):
    """The point in time no longer exists: a node was lost, or it expired."""


@dataclass(frozen=True, slots=True)
class SearchResponse:
    hits: list[Body]
    total: int
    """Of a query that counts."""
    partial: bool
    """Some shard failed or ran out of time."""
    facets: Mapping[str, Mapping[str, int]]
    """By field and value."""


@dataclass(frozen=True, slots=True)
class MultiSearch:
    """Sends searches of one call with the same target and deadline."""

    client: OpenSearch
    deadline: Deadline
    header: Body
    """Of every search: which index, which copies of its shards."""
    common: Body = field(default_factory=dict)
    """In the body of every search."""

    def run(self, bodies: Mapping[Key, Body]) -> dict[Key, SearchResponse]:
        """Send all searches in one request.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError
            PointInTimeGoneError
        """
        self.deadline.check()
        if not bodies:
            return {}
        with errors.translate_errors(self.deadline):
            lines, timeout = self._lines(bodies.values()), request_timeout(self.deadline)
            found = self.client.msearch(body=lines, params=timeout)["responses"]
        return {key: _to_response(each) for key, each in zip(bodies, found, strict=True)}

    def _lines(self, bodies: Iterable[Body]) -> str:
        header = _encode(self.header)
        return "".join(f"{header}\n{_encode(body | self.common)}\n" for body in bodies)


def strict_search(client: OpenSearch, index: str, deadline: Deadline) -> MultiSearch:
    """Search so that it fails if a part of the index does not answer."""
    return MultiSearch(client, deadline, {"index": index, "allow_partial_search_results": False})


def best_effort_search(
    client: OpenSearch, index: str, deadline: Deadline, preference: str
) -> MultiSearch:
    """Search so that the parts that answer are enough.

    Searches with the same `preference` use the same copies of the shards, so that none sees an older state
    than the one before it.
    """
    header = {"index": index, "preference": preference}
    return MultiSearch(client, deadline, header, _time_limit(deadline))


@contextmanager
def point_in_time_search(
    client: OpenSearch, index: str, deadline: Deadline
) -> Iterator[MultiSearch]:
    """Search so that all searches see one state of the index, and the parts that answer are enough."""
    remaining = ceil(deadline.remaining())
    keep_alive = f"{min(remaining + KEEP_ALIVE_SECONDS, MAX_KEEP_ALIVE_SECONDS)}s"
    with errors.translate_errors(deadline):
        params = {"keep_alive": keep_alive, **request_timeout(deadline)}
        pit = client.create_pit(index=index, params=params)["pit_id"]
    point = {"pit": {"id": pit, "keep_alive": keep_alive}}
    try:
        yield MultiSearch(client, deadline, {}, point | _time_limit(deadline))
    finally:
        _delete_point(client, pit)


def _delete_point(client: OpenSearch, point: str) -> None:
    try:
        client.delete_pit(body={"pit_id": [point]}, params={"request_timeout": DELETE_SECONDS})
    except OpenSearchException:
        # It expires by itself; the results must not be lost because of it.
        return


def _time_limit(deadline: Deadline) -> Body:
    return {"timeout": f"{max(1, round(1000 * SEARCH_SHARE * deadline.remaining()))}ms"}


def _encode(body: Body) -> str:
    return orjson.dumps(body).decode()


def _to_response(found: Mapping[str, Any]) -> SearchResponse:
    if "error" in found:
        raise _to_error(found)
    hits, shards = found["hits"], found["_shards"]
    return SearchResponse(
        hits["hits"],
        hits["total"]["value"] if "total" in hits else 0,
        found["timed_out"] or shards["successful"] < shards["total"],
        {name: _read_facet(values) for name, values in found.get("aggregations", {}).items()},
    )


def _read_facet(aggregation: Mapping[str, Any]) -> dict[str, int]:
    return {bucket["key"]: bucket["doc_count"] for bucket in aggregation["buckets"]}


def _to_error(found: Mapping[str, Any]) -> Exception:
    kind, reason = errors.read_reason(found)
    if kind == "search_context_missing_exception":
        return PointInTimeGoneError(reason)
    return errors.refusal_to_error(found["status"], kind, reason)
