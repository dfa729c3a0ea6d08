"""What the pipeline may do with an index on the cluster."""

from collections.abc import Iterable, Iterator

from opensearchpy import OpenSearch

from indexing.index.protocols import IndexChange, IndexedDocument, Replace, Written
from indexing.index.validation import BatchLimits, prepare_batches
from indexing.opensearch import export as contents
from indexing.opensearch.bulk_requests import Bulk
from indexing.opensearch.cleanup import Leftovers
from indexing.opensearch.document_records import Documents
from indexing.opensearch.errors import check_shards, named_errors
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.write_batch import Writer

BATCH = BatchLimits(changes=512, chunks=2_000)
"""Enough chunks to make the requests of a batch cheap, few enough to hold in memory."""
PATIENCE = 60.0
"""Seconds to wait for other writers, or for a busy cluster, without getting on."""


class OpenSearchIndexWriter:
    """An `IndexWriter` over one index of a cluster. Any number of them, anywhere, may be used at once."""

    def __init__(
        self,
        client: OpenSearch,
        index: str,
        dimension: int,
        vectors: VectorSettings,
        patience: float = PATIENCE,
    ) -> None:
        """To be had from `open_writer`, which sees to it that the index is there and fits."""
        self._client = client
        self._index = index
        self._dimension = dimension
        self._vectors = vectors
        self._patience = patience
        self._leftovers = Leftovers(client, index)

    def write(self, changes: Iterable[IndexChange]) -> Written:
        """See `IndexWriter.write`. Every document is as one change left it, whatever happens.

        Raises:
            ValueError: see `IndexWriter.write`; and chunks of one document that disagree on what is said of
                all of it, or a boost below zero. Batches before the one at fault are written.
            TemporarilyUnavailableError: the cluster cannot be reached or is busy, or another writer is at a document.
            ActionRequiredError: the index cannot be written.
        """
        bulk = Bulk(self._client, self._index, self._patience)
        documents = Documents(self._client, self._index, bulk)
        writer = Writer(documents, bulk, self._vectors.quantisation, self._patience)
        written = Written()
        try:
            for batch in prepare_batches(changes, self._dimension, BATCH):
                with named_errors():
                    self._leftovers.settle(documents, bulk)
                    written += writer.write(batch)
        finally:
            if written != Written():
                self.refresh()
        return written

    def refresh(self) -> None:
        """What has been written is visible when this returns, on every copy of it that can be searched."""
        bulk = Bulk(self._client, self._index, self._patience)
        with named_errors():
            bulk.patiently(self._refreshed)

    def _refreshed(self) -> None:
        check_shards(self._client.indices.refresh(index=self._index))

    def scan(self) -> Iterator[IndexedDocument]:
        """See `IndexWriter.scan`. Documents written meanwhile may or may not be among them."""
        yield from map(contents.known, contents.scan(self._client, self._index))

    def export(self, after: str = "") -> Iterator[Replace]:
        """See `IndexWriter.export`. Each document is as one moment saw it; few are held at a time."""
        documents = Documents(
            self._client, self._index, Bulk(self._client, self._index, self._patience)
        )
        export = contents.Export(self._client, self._index, documents, self._dimension)
        yield from export.after(after)
