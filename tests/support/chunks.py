"""Builders of chunks, vectors and changes for tests of an index."""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from connectors.access import EVERYBODY, Access
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import EmbedderIdentity, Vector, Vectors
from indexing.index.protocols import IndexQuery, Replace

DIMENSION = 64
IDENTITY = EmbedderIdentity(model="test", version="1", precision="float32", dimension=DIMENSION)


def vector(name: str, dimension: int = DIMENSION) -> Vector:
    """Return a unit vector that depends on `name` alone; those of two names are nearly orthogonal."""
    found: Vector = vectors([name], dimension)[0]
    return found


def vectors(names: Sequence[str], dimension: int = DIMENSION) -> Vectors:
    drawn = [
        np.random.default_rng(zlib.crc32(name.encode())).standard_normal(dimension)
        for name in names
    ]
    return unit(np.array(drawn, np.float32).reshape(-1, dimension))


def near(vector: Vector, cosine: float) -> Vector:
    """Return a unit vector with this cosine to `vector`."""
    other = np.roll(vector, 1)
    across = unit((other - (other @ vector) * vector)[None])[0]
    found: Vector = (cosine * vector + np.sqrt(1.0 - cosine**2) * across).astype(np.float32)
    return found


def unit(matrix: NDArray[np.floating]) -> Vectors:
    """Scale each row to length 1."""
    if len(matrix) == 0:
        return matrix.astype(np.float32)
    found: Vectors = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return found


def chunk(document_id: str, position: int, text: str, **fields: Any) -> Chunk:
    """Build a public chunk; `fields` are those of Chunk."""
    plain = Chunk(
        document_id=document_id,
        position=position,
        text=text,
        embedded_text=text,
        section=position,
        span=Span(0, len(text)),
        title="Title",
        link=f"https://example.com/{document_id}",
        source="folder",
        media_type="text/plain",
        access=EVERYBODY,
    )
    return replace(plain, **fields)


def document(
    document_id: str,
    *texts: str,
    generation: int = 1,
    vectors_of: Vectors | None = None,
    readers: Sequence[str] | None = None,
    **fields: Any,
) -> Replace:
    """Build a Replace with one chunk per text; vectors depend on the texts unless given."""
    if readers is not None:
        fields["access"] = Access.to(readers)
    return Replace(
        document_id=document_id,
        generation=generation,
        content_hash=f"hash of {document_id} {generation}",
        chunks=tuple(chunk(document_id, n, text, **fields) for n, text in enumerate(texts)),
        vectors=vectors(texts) if vectors_of is None else vectors_of,
    )


def query(text: str, **fields: Any) -> IndexQuery:
    """Build a query, by default of the keyword leg only."""
    return replace(IndexQuery(text=text, vector=None, alpha=0.0), **fields)
