"""The embedder alone on the chunks of some documents: what indexing is measured against."""

from collections.abc import Iterable, Sequence

from connectors.batched import batched
from connectors.document import Document
from indexing.chunking.chunker import chunk_document
from indexing.embedding.embedder import Embedder

TEXTS_A_CALL = 1024


def texts_of(documents: Iterable[Document], embedder: Embedder) -> list[str]:
    """Each with a blank more: the tokens of what was counted are remembered, and to read them is part of the work."""
    return [
        chunk.embedded_text + " "
        for document in documents
        for chunk in chunk_document(document, embedder)
    ]


def embed(texts: Sequence[str], embedder: Embedder) -> None:
    for some in batched(texts, TEXTS_A_CALL):
        embedder.embed_passages(some)
