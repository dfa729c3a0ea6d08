"""The document records of one index: read as they are this moment, written on condition."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from opensearchpy import OpenSearch

from connectors.batched import portions
from indexing.opensearch import errors
from indexing.opensearch.bulk_actions import drop_document, put_document
from indexing.opensearch.bulk_requests import Action, Bulk, Conflict, Stored
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import DocumentRecord, Held, document_record

READ = 1_000
"""Records asked for at once."""


class Documents:
    """For one thread at a time."""

    def __init__(self, client: OpenSearch, index: str, bulk: Bulk) -> None:
        self._client = client
        self._index = index
        self._bulk = bulk

    def read(self, ids: Iterable[str]) -> dict[str, Held]:
        """By document id; the newest acknowledged state, refreshed or not."""
        held: dict[str, Held] = {}
        for page in portions(map(document_key, ids), READ):
            for found in self._bulk.patiently(partial(self._got, page)):
                held[found.record.id] = found
        return held

    def put(self, wanted: Sequence[tuple[DocumentRecord, Held | None]]) -> list[Held | None]:
        """Write each record if its state is still as held (`None`: not there).

        Returns:
            for each what it is now, or `None`: another writer was there first.
        """
        if not wanted:
            return []
        # Even one that says what another said before: who takes over repeats what it found.
        stamped = [replace(record, stamp=secrets.token_hex(6)) for record, _ in wanted]
        actions = [
            put_document(record, held) for record, (_, held) in zip(stamped, wanted, strict=True)
        ]
        put: list[Held | None] = [
            Held(record, outcome.sequence, outcome.term) if isinstance(outcome, Stored) else None
            for record, outcome in zip(stamped, self._bulk.send_conditional(actions), strict=True)
        ]
        return self._recognised(stamped, put)

    def finish(self, held: Sequence[Held]) -> list[Held]:
        """Nothing of these is left to do: they say so, and are no more where no document is meant.

        Returns:
            those that another writer took over meanwhile.
        """
        outcomes = self._bulk.send_conditional([_finishing(each) for each in held])
        return [
            each
            for each, outcome in zip(held, outcomes, strict=True)
            if isinstance(outcome, Conflict)
        ]

    def _recognised(
        self, stamped: Sequence[DocumentRecord], put: list[Held | None]
    ) -> list[Held | None]:
        """A write whose answer was lost is sent again and then refused by its own first success."""
        refused = [number for number, held in enumerate(put) if held is None]
        now = self.read(stamped[number].id for number in refused)
        for number in refused:
            found = now.get(stamped[number].id)
            if found is not None and found.record.stamp == stamped[number].stamp:
                put[number] = found
        return put

    def _got(self, keys: Sequence[str]) -> list[Held]:
        asked = {"docs": [{"_id": key, "routing": key} for key in keys]}
        told = self._client.mget(body=asked, index=self._index)["docs"]
        for each in told:
            if "error" in each:
                raise errors.of_refusal(0, *errors.told(each))
        return [held_record(each) for each in told if each["found"]]


def held_record(found: dict[str, Any]) -> Held:
    """Of a record as a get or a search with `seq_no_primary_term` tells it."""
    return Held(document_record(found["_source"]), found["_seq_no"], found["_primary_term"])


def _finishing(held: Held) -> Action:
    record = held.record
    if record.state == "document":
        return put_document(record.finished(), held)
    return drop_document(held)
