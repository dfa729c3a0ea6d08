"""Writes an index on the cluster for the ingestion pipeline."""

from collections.abc import Iterable, Iterator, Sequence

from opensearchpy import OpenSearch

from indexing.index.protocols import (
    IndexChange,
    IndexedDocument,
    Replace,
    SelectedDocument,
    Selection,
    Written,
)
from indexing.index.validation import BatchLimits, prepare_batches
from indexing.opensearch import export
from indexing.opensearch.bulk_requests import BulkClient
from indexing.opensearch.document_records import DocumentRecords
from indexing.opensearch.errors import check_shards, translate_errors
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.selection import count_documents, select_documents
from indexing.opensearch.write_protocol import BatchWriter, LeftoverCleaner
from indexing.text.analysis import Analysis

BATCH_LIMITS = BatchLimits(changes=512, chunks=2_000)
"""Enough chunks to make requests efficient, few enough to hold in memory."""
PATIENCE = 60.0
"""Seconds to wait for other writers, or for a busy cluster, without progress."""


class OpenSearchIndexWriter:
    """An `IndexWriter` over one index of a cluster. Any number of writers may work at the same time."""

    def __init__(
        self,
        client: OpenSearch,
        index: str,
        dimension: int,
        vectors: VectorSettings,
        analysis: Analysis,
        patience: float = PATIENCE,
    ) -> None:
        """Use `open_writer`, which ensures that the index exists and fits."""
        self._client = client
        self._index = index
        self._dimension = dimension
        self._vectors = vectors
        self._analysis = analysis
        self._patience = patience
        self._leftovers = LeftoverCleaner(client, index)

    def write(self, changes: Iterable[IndexChange]) -> Written:
        """See `IndexWriter.write`. Whatever happens, each document is as some change left it.

        Raises:
            ValueError: see `IndexWriter.write`; also chunks of one document that disagree on a property of
                the whole document, or a negative boost. Earlier batches are written.
            TemporarilyUnavailableError: the cluster is unreachable or busy, or another writer keeps changing
                a document.
            ActionRequiredError: the index cannot be written.
        """
        bulk = self._bulk_client()
        records = DocumentRecords(self._client, self._index, bulk)
        writer = BatchWriter(records, bulk, self._vectors.quantisation, self._patience)
        result = Written()
        try:
            for batch in prepare_batches(changes, self._dimension, BATCH_LIMITS, self._analysis):
                with translate_errors():
                    self._leftovers.run(records, bulk)
                    result += writer.write(batch)
        finally:
            if result != Written():
                self.refresh()
        return result

    def refresh(self) -> None:
        """Make everything written visible on every copy that can be searched."""
        with translate_errors():
            self._bulk_client().retry_while_busy(self._refresh)

    def _refresh(self) -> None:
        check_shards(self._client.indices.refresh(index=self._index))

    def scan(self) -> Iterator[IndexedDocument]:
        """See `IndexWriter.scan`. Documents written meanwhile may or may not be among them."""
        records = export.scan_records(self._client, self._index)
        yield from map(export.to_indexed_document, records)

    def select(self, selection: Selection) -> Iterator[SelectedDocument]:
        """See `IndexWriter.select`."""
        yield from select_documents(self._client, self._index, selection)

    def count(self, selections: Sequence[Selection]) -> int:
        """See `IndexWriter.count`."""
        return count_documents(self._client, self._index, selections)

    def export(self, after: str = "") -> Iterator[Replace]:
        """See `IndexWriter.export`. Each document is of one moment; few are held in memory at a time."""
        records = DocumentRecords(self._client, self._index, self._bulk_client())
        exporter = export.Exporter(self._client, self._index, records, self._dimension)
        yield from exporter.read_after(after)

    def _bulk_client(self) -> BulkClient:
        return BulkClient(self._client, self._index, self._patience)
