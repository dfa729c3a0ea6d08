"""Searches sent to the cluster: several in one request, read as answers or as our errors."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any, TypeVar

import orjson
from opensearchpy import OpenSearch, OpenSearchException

from indexing.opensearch import errors
from indexing.opensearch.client import within
from indexing.opensearch.mapping import Body
from indexing.runtime.deadline import Deadline

SHARE = 0.8
"""Of the time that is left; then a shard tells what it has found so far, and the rest is for reading it."""
KEPT = 5
"""Seconds that a point in time outlives its deadline; it is deleted long before."""
LONGEST = 3_600
CLEARED = 2.0
"""Seconds that deleting a point in time may take. The cluster forgets it by itself a little later."""

Key = TypeVar("Key")


class Gone(Exception):
    """The point in time is no more: a node was lost, or it outlived its time."""


@dataclass(frozen=True, slots=True)
class Answer:
    hits: list[Body]
    total: int
    """Of a search that counts."""
    partial: bool
    """Some shard failed or ran out of time."""
    facets: Mapping[str, Mapping[str, int]]
    """By field and value."""


@dataclass(frozen=True, slots=True)
class Searches:
    """Where searches go, and until when an answer is wanted."""

    client: OpenSearch
    deadline: Deadline
    header: Body
    """Of every search: which index, which copies of its shards."""
    common: Body = field(default_factory=dict)
    """In the body of every search."""

    def ask(self, bodies: Mapping[Key, Body]) -> dict[Key, Answer]:
        """All in one request.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError
            Gone: see there.
        """
        self.deadline.check()
        if not bodies:
            return {}
        with errors.named_errors(self.deadline):
            told = self.client.msearch(
                body=self._lines(bodies.values()), params=within(self.deadline)
            )
        return {key: _answer(each) for key, each in zip(bodies, told["responses"], strict=True)}

    def _lines(self, bodies: Iterable[Body]) -> str:
        header = _json(self.header)
        return "".join(f"{header}\n{_json(body | self.common)}\n" for body in bodies)


def whole(client: OpenSearch, index: str, deadline: Deadline) -> Searches:
    """Searches that fail where a part of the index does not answer."""
    return Searches(client, deadline, {"index": index, "allow_partial_search_results": False})


def best_effort(client: OpenSearch, index: str, deadline: Deadline, copy: str) -> Searches:
    """Searches that tell what the parts which do answer have found.

    Those that name the same `copy` ask the same copies of the shards, so that none sees an older state
    than the one before it.
    """
    header = {"index": index, "preference": copy}
    return Searches(client, deadline, header, _limit(deadline))


@contextmanager
def at_one_point(client: OpenSearch, index: str, deadline: Deadline) -> Iterator[Searches]:
    """Searches that all see one state of the index, and tell what the parts that answer have found."""
    keep = f"{min(ceil(deadline.remaining()) + KEPT, LONGEST)}s"
    with errors.named_errors(deadline):
        made = client.create_pit(index=index, params={"keep_alive": keep, **within(deadline)})
    point = {"pit": {"id": made["pit_id"], "keep_alive": keep}}
    try:
        yield Searches(client, deadline, {}, point | _limit(deadline))
    finally:
        _forget(client, made["pit_id"])


def _forget(client: OpenSearch, point: str) -> None:
    try:
        client.delete_pit(body={"pit_id": [point]}, params={"request_timeout": CLEARED})
    except OpenSearchException:
        # It ends by itself; what was found under it is not to be lost for that.
        return


def _limit(deadline: Deadline) -> Body:
    return {"timeout": f"{max(1, round(1000 * SHARE * deadline.remaining()))}ms"}


def _json(body: Body) -> str:
    return orjson.dumps(body).decode()


def _answer(told: Mapping[str, Any]) -> Answer:
    if "error" in told:
        raise _refusal(told)
    hits, shards = told["hits"], told["_shards"]
    return Answer(
        hits["hits"],
        hits["total"]["value"] if "total" in hits else 0,
        told["timed_out"] or shards["successful"] < shards["total"],
        {name: _facet(values) for name, values in told.get("aggregations", {}).items()},
    )


def _facet(told: Mapping[str, Any]) -> dict[str, int]:
    return {bucket["key"]: bucket["doc_count"] for bucket in told["buckets"]}


def _refusal(told: Mapping[str, Any]) -> Exception:
    kind, reason = errors.told(told)
    if kind == "search_context_missing_exception":
        return Gone(reason)
    return errors.of_refusal(told["status"], kind, reason)
