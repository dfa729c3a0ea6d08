"""Items of bulk requests: their lines are JSON that says what is meant."""

import json
from typing import Any

import numpy as np
import pytest

from indexing.index.protocols import Replace
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch import bulk_actions
from indexing.opensearch.bulk_requests import Action
from indexing.opensearch.mapping import Quantisation
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import BYTE, Columns, Held, Version, chunk_source, record_of
from tests.support.chunks import document, unit

KEY = document_key("a")


def prepared(change: Replace) -> PreparedReplace:
    ((item,),) = prepare_batches([change], change.vectors.shape[1], BatchLimits(10, 10))
    assert isinstance(item, PreparedReplace)
    return item


def lines(action: Action) -> list[dict[str, Any]]:
    assert action.lines.endswith(b"\n")
    return [json.loads(line) for line in action.lines.splitlines()]


def test_a_record_is_made_only_where_there_is_none() -> None:
    record = record_of(prepared(document("a", "one")), Version("v", 1))
    head, body = lines(bulk_actions.put_document(record, None))
    assert head == {"create": {"_id": KEY, "routing": KEY}}
    assert body["id"] == "a"


def test_a_record_is_changed_only_as_it_was_seen() -> None:
    record = record_of(prepared(document("a", "one")), Version("v", 1))
    held = Held(record, sequence=7, term=2)
    condition = {"_id": KEY, "routing": KEY, "if_seq_no": 7, "if_primary_term": 2}
    assert lines(bulk_actions.put_document(record, held))[0] == {"index": condition}
    assert lines(bulk_actions.drop_document(held)) == [{"delete": condition}]


@pytest.mark.parametrize("quantisation", ["float", "scalar", "byte"])
def test_chunks_carry_their_vectors(quantisation: Quantisation) -> None:
    random = np.random.default_rng(1)
    item = prepared(
        document("a", "uno\n", "dos\u2028", vectors_of=unit(random.standard_normal((2, 384))))
    )
    record = record_of(item, Version("v", 2))
    made = list(bulk_actions.put_chunks(record, item, quantisation))
    for position, action in enumerate(made):
        head, body = lines(action)
        assert head == {"index": {"_id": f"{KEY}.v.{position}", "routing": KEY}}
        vector = np.array(body.pop("vector"))
        scale, worst = (BYTE, 0.5) if quantisation == "byte" else (1.0, 5.1e-8)
        assert np.abs(vector - scale * item.change.vectors[position]).max() <= worst
        assert body == json.loads(json.dumps(chunk_source(record, item, position)))
    assert len(made) == 2


def test_all_chunks_of_a_version_are_labelled_or_dropped_by_their_ids() -> None:
    record = record_of(prepared(document("a", "one", "two")), Version("v", 2))
    columns = Columns(frozenset({"public", "group:x"}), frozenset({"s"}), 2.0)
    labelled = [lines(action) for action in bulk_actions.label_chunks(record, columns)]
    doc = {"readers": ["group:x", "public"], "sets": ["s"], "boost": 2.0}
    assert labelled == [
        [{"update": {"_id": f"{KEY}.v.{n}", "routing": KEY}}, {"doc": doc}] for n in range(2)
    ]
    dropped = [lines(action) for action in bulk_actions.drop_chunks(record, Version("old", 3))]
    assert dropped == [[{"delete": {"_id": f"{KEY}.old.{n}", "routing": KEY}}] for n in range(3)]


def test_half_of_a_surrogate_pair_does_not_spoil_a_request() -> None:
    item = prepared(document("a", "one", title="half \ud83d of a smile"))
    (action,) = bulk_actions.put_chunks(record_of(item, Version("v", 1)), item, "float")
    action.lines.decode()
    _, body = lines(bulk_actions.put_document(record_of(item, Version("v", 1)), None))
    assert body["said"]["title"] == "half ? of a smile"
