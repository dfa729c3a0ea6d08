"""Bulk requests are of bounded size and contain valid JSON; backoff grow and end."""

import json
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Replace
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch.bulk_requests import (
    Backoff,
    BulkAction,
    delete_chunks,
    delete_document,
    label_chunks,
    pack_requests,
    put_chunks,
    put_document,
)
from indexing.opensearch.errors import RETRY_SOON
from indexing.opensearch.mapping import Quantisation
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import (
    BYTE_SCALE,
    ChunkLabels,
    StoredRecord,
    Version,
    chunk_source,
    record_of,
)
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import document, unit


@given(st.lists(st.binary(max_size=30)), st.integers(1, 50))
def test_requests_hold_all_actions_in_order_and_not_too_much(
    lines: list[bytes], limit: int
) -> None:
    actions = [BulkAction(f"{n}", line) for n, line in enumerate(lines)]
    requests = list(pack_requests(actions, limit))
    assert [action for request in requests for action in request] == actions
    for request in requests:
        assert request
        assert len(request) == 1 or sum(len(action.lines) for action in request) <= limit
    # No two neighbors would have fitted into one.
    for one, following in pairwise(requests):
        assert sum(len(action.lines) for action in [*one, following[0]]) > limit


def test_actions_are_encoded_when_they_are_requested() -> None:
    made: list[int] = []

    def endless() -> Iterator[BulkAction]:
        number = 0
        while True:
            made.append(number)
            yield BulkAction("a", b"12345")
            number += 1

    requests = pack_requests(endless(), limit=20)
    assert [len(next(requests)), len(next(requests))] == [4, 4]
    # One more than was returned: it did not fit any more.
    assert len(made) == 9


def test_pauses_double_and_end_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(random, "uniform", lambda *_: 1.0)
    backoff, reason = Backoff(patience=20.0), TemporarilyUnavailableError("full", RETRY_SOON)
    for _ in range(8):
        backoff.wait(reason)
    with pytest.raises(TemporarilyUnavailableError) as raised:
        backoff.wait(reason)
    assert raised.value is reason
    # 0.1 + 0.2 + … + 3.2 = 6.3; 5 and 5 more are 16.3, and the next 5 would be too long.
    assert slept == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


KEY = document_key("a")


def prepared(change: Replace) -> PreparedReplace:
    ((item,),) = prepare_batches(
        [change], change.vectors.shape[1], BatchLimits(10, 10), BY_LANGUAGE
    )
    assert isinstance(item, PreparedReplace)
    return item


def lines(action: BulkAction) -> list[dict[str, Any]]:
    assert action.lines.endswith(b"\n")
    return [json.loads(line) for line in action.lines.splitlines()]


def test_a_record_is_made_only_where_there_is_none() -> None:
    record = record_of(prepared(document("a", "one")), Version("v", 1))
    head, body = lines(put_document(record, None))
    assert head == {"create": {"_id": KEY, "routing": KEY}}
    assert body["id"] == "a"


def test_a_record_is_changed_only_as_it_was_seen() -> None:
    record = record_of(prepared(document("a", "one")), Version("v", 1))
    held = StoredRecord(record, sequence=7, term=2)
    condition = {"_id": KEY, "routing": KEY, "if_seq_no": 7, "if_primary_term": 2}
    assert lines(put_document(record, held))[0] == {"index": condition}
    assert lines(delete_document(held)) == [{"delete": condition}]


@pytest.mark.parametrize("quantisation", ["float", "scalar", "byte"])
def test_chunks_carry_their_vectors(quantisation: Quantisation) -> None:
    random = np.random.default_rng(1)
    item = prepared(
        document("a", "uno\n", "dos\u2028", vectors_of=unit(random.standard_normal((2, 384))))
    )
    record = record_of(item, Version("v", 2))
    made = list(put_chunks(record, item, quantisation))
    for position, action in enumerate(made):
        head, body = lines(action)
        assert head == {"index": {"_id": f"{KEY}.v.{position}", "routing": KEY}}
        vector = np.array(body.pop("vector"))
        scale, worst = (BYTE_SCALE, 0.5) if quantisation == "byte" else (1.0, 5.1e-8)
        assert np.abs(vector - scale * item.change.vectors[position]).max() <= worst
        assert body == json.loads(json.dumps(chunk_source(record, item, position)))
    assert len(made) == 2


def test_all_chunks_of_a_version_are_labelled_or_dropped_by_their_ids() -> None:
    record = record_of(prepared(document("a", "one", "two")), Version("v", 2))
    columns = ChunkLabels(
        readers=frozenset({"public", "group:x"}),
        sets=frozenset({"s"}),
        personas=frozenset({"7"}),
        boost=2.0,
    )
    labelled = [lines(action) for action in label_chunks(record, columns)]
    labels = {"sets": ["s"], "projects": [], "personas": ["7"], "boost": 2.0}
    doc = {"readers": ["group:x", "public"], **labels}
    assert labelled == [
        [{"update": {"_id": f"{KEY}.v.{n}", "routing": KEY}}, {"doc": doc}] for n in range(2)
    ]
    dropped = [lines(action) for action in delete_chunks(record, Version("old", 3))]
    assert dropped == [[{"delete": {"_id": f"{KEY}.old.{n}", "routing": KEY}}] for n in range(3)]


def test_half_of_a_surrogate_pair_does_not_spoil_a_request() -> None:
    item = prepared(document("a", "one", title="half \ud83d of a smile"))
    (action,) = put_chunks(record_of(item, Version("v", 1)), item, "float")
    action.lines.decode()
    _, body = lines(put_document(record_of(item, Version("v", 1)), None))
    assert body["said"]["title"] == "half ? of a smile"
