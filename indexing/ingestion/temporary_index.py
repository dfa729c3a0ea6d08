"""Indexes documents that are searched once and not kept, such as the files of a question."""

from collections.abc import Sequence

from connectors.document import Document
from indexing.chunking.chunker import chunk_document, compute_content_hash
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import IndexWriter, Replace


def index_documents(documents: Sequence[Document], embedder: Embedder, writer: IndexWriter) -> None:
    """Write the documents to an index of their own.

    Raises:
        TemporarilyUnavailableError, ActionRequiredError: of the embedder or the index.
    """
    for document in documents:
        chunks = chunk_document(document, embedder)
        vectors = embedder.embed_passages([chunk.embedded_text for chunk in chunks])
        writer.write(
            [
                Replace(
                    document_id=document.id,
                    generation=1,
                    content_hash=compute_content_hash(document),
                    chunks=tuple(chunks),
                    vectors=vectors,
                )
            ]
        )
