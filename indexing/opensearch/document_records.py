"""Reads and writes the document records of one index: reads the newest state, writes conditionally."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from opensearchpy import OpenSearch

from connectors.batched import batched
from indexing.opensearch import errors
from indexing.opensearch.bulk_requests import (
    BulkAction,
    BulkClient,
    Conflict,
    Stored,
    delete_document,
    put_document,
)
from indexing.opensearch.naming import document_key
from indexing.opensearch.record_mapping import DocumentRecord, StoredRecord, document_record

PAGE_SIZE = 1_000


class DocumentRecords:
    """For one thread at a time."""

    def __init__(self, client: OpenSearch, index: str, bulk: BulkClient) -> None:
        self._client = client
        self._index = index
        self._bulk = bulk

    def read(self, ids: Iterable[str]) -> dict[str, StoredRecord]:
        """Return by document id the newest acknowledged records, refreshed or not."""
        stored: dict[str, StoredRecord] = {}
        for page in batched(map(document_key, ids), PAGE_SIZE):
            for found in self._bulk.retry_while_busy(partial(self._get, page)):
                stored[found.record.id] = found
        return stored

    def put(
        self, writes: Sequence[tuple[DocumentRecord, StoredRecord | None]]
    ) -> list[StoredRecord | None]:
        """Write each record if it is still as stored (`None`: if there is none).

        Returns:
            the new state of each, or `None` where another writer was first.
        """
        if not writes:
            return []
        # The stamp distinguishes two equal records: a takeover writes what it found once more.
        stamped = [replace(record, stamp=secrets.token_hex(6)) for record, _ in writes]
        actions = [
            put_document(record, stored)
            for record, (_, stored) in zip(stamped, writes, strict=True)
        ]
        put: list[StoredRecord | None] = [
            StoredRecord(record, outcome.sequence, outcome.term)
            if isinstance(outcome, Stored)
            else None
            for record, outcome in zip(stamped, self._bulk.send_conditional(actions), strict=True)
        ]
        return self._recognize_own(stamped, put)

    def finish(self, stored: Sequence[StoredRecord]) -> list[StoredRecord]:
        """Mark the records as finished, or delete them if their documents are deleted.

        Returns:
            those that another writer took over meanwhile.
        """
        outcomes = self._bulk.send_conditional([_finish(each) for each in stored])
        return [
            each
            for each, outcome in zip(stored, outcomes, strict=True)
            if isinstance(outcome, Conflict)
        ]

    def _recognize_own(
        self, stamped: Sequence[DocumentRecord], put: list[StoredRecord | None]
    ) -> list[StoredRecord | None]:
        """Recognize one's own records among those that were refused.

        A write whose response was lost is sent again, and then refused because it had succeeded.
        """
        refused = [number for number, stored in enumerate(put) if stored is None]
        current = self.read(stamped[number].id for number in refused)
        for number in refused:
            found = current.get(stamped[number].id)
            if found is not None and found.record.stamp == stamped[number].stamp:
                put[number] = found
        return put

    def _get(self, keys: Sequence[str]) -> list[StoredRecord]:
        body = {"docs": [{"_id": key, "routing": key} for key in keys]}
        found = self._client.mget(body=body, index=self._index)["docs"]
        for each in found:
            if "error" in each:
                raise errors.refusal_to_error(0, *errors.read_reason(each))
        return [to_stored_record(each) for each in found if each["found"]]


def to_stored_record(hit: dict[str, Any]) -> StoredRecord:
    """Convert a hit of a get, or of a search with `seq_no_primary_term`."""
    return StoredRecord(document_record(hit["_source"]), hit["_seq_no"], hit["_primary_term"])


def _finish(stored: StoredRecord) -> BulkAction:
    record = stored.record
    if record.state == "document":
        return put_document(record.finished(), stored)
    return delete_document(stored)
