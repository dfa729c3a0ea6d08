"""Index the documents of a dataset; the index is kept for the next run."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from backend.evaluation.dataset import Dataset, Passage
from connectors.access import EVERYBODY
from connectors.batched import batched
from connectors.document import Document, Section
from indexing.chunking.chunker import CHUNKER_VERSION, chunk_document, compute_content_hash
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import IndexWriter, Replace

BATCH = 256
"""Documents that are embedded and written together; a crash may lose so many."""


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str
    """`documents` or `queries`."""
    done: int
    total: int


ReportProgress: TypeAlias = Callable[[Progress], None]


def index_name(dataset: Dataset, embedder: Embedder) -> str:
    """Name the index by the documents, the chunker and the embedder: 32 hexadecimal digits."""
    inputs = [dataset.name, dataset.digest, asdict(embedder.identity), CHUNKER_VERSION]
    return hashlib.blake2b(json.dumps(inputs).encode(), digest_size=16).hexdigest()


def index_corpus(
    dataset: Dataset, writer: IndexWriter, embedder: Embedder, progress: ReportProgress
) -> None:
    """Write what the index does not have yet; continues where an interrupted run ended."""
    present = {document.id for document in writer.scan()}
    passages = (
        passage for passage in dataset.passages() if document_id(dataset, passage.id) not in present
    )
    done = len(present)
    progress(Progress("documents", done, dataset.documents))
    for batch in batched(passages, BATCH):
        writer.write(_replacements(dataset, batch, embedder))
        done += len(batch)
        progress(Progress("documents", done, dataset.documents))


def document_id(dataset: Dataset, passage: str) -> str:
    return f"{dataset.name}:{passage}"


def passage_id(dataset: Dataset, document: str) -> str:
    return document.removeprefix(f"{dataset.name}:")


def _replacements(dataset: Dataset, batch: list[Passage], embedder: Embedder) -> Iterator[Replace]:
    """Embed all chunks of the batch in one call: the embedder sorts them by length."""
    documents = [_document(dataset, passage) for passage in batch]
    chunks = [chunk_document(document, embedder) for document in documents]
    texts = [chunk.embedded_text for of_document in chunks for chunk in of_document]
    empty = np.empty((0, embedder.identity.dimension), np.float32)
    vectors = embedder.embed_passages(texts) if texts else empty
    end = 0
    for document, of_document in zip(documents, chunks, strict=True):
        start, end = end, end + len(of_document)
        yield Replace(
            document_id=document.id,
            generation=1,
            content_hash=compute_content_hash(document),
            chunks=tuple(of_document),
            vectors=vectors[start:end],
        )


def _document(dataset: Dataset, passage: Passage) -> Document:
    """Make a document of title and text only, which is what the judgments refer to."""
    return Document(
        id=document_id(dataset, passage.id),
        source=dataset.name,
        title=passage.title,
        sections=(Section(text=passage.text if passage.text.strip() else passage.title),),
        link=f"{dataset.corpus.resolve().as_uri()}#{passage.id}",
        media_type="text/plain",
        access=EVERYBODY,
        version=dataset.digest,
    )
