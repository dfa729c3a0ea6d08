"""Changes of records as items of a bulk request; pure."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from indexing.embedding.embedder import Vectors
from indexing.index.validation import PreparedReplace
from indexing.opensearch.bulk_requests import Action
from indexing.opensearch.mapping import Quantisation
from indexing.opensearch.naming import chunk_id
from indexing.opensearch.record_mapping import (
    BYTE,
    Columns,
    DocumentRecord,
    Held,
    Source,
    Version,
    chunk_source,
    document_source,
)
from indexing.opensearch.score_conversion import DIGITS

_Kind = Literal["index", "create", "update", "delete"]


def put_document(record: DocumentRecord, held: Held | None) -> Action:
    """On condition that the record is still as `held`, or that there is none."""
    condition = _condition(held) if held else {}
    head = _head("index" if held else "create", record.key, record.key, condition)
    return Action(record.id, head + _line(document_source(record)))


def drop_document(held: Held) -> Action:
    """On condition that the record is still as `held`."""
    key = held.record.key
    return Action(held.record.id, _head("delete", key, key, _condition(held)))


def put_chunks(
    record: DocumentRecord, prepared: PreparedReplace, quantisation: Quantisation
) -> Iterator[Action]:
    """All chunks of the version that `record` tells; each made when it is asked for."""
    for position, vector in enumerate(_vector_texts(prepared.change.vectors, quantisation)):
        source = chunk_source(record, prepared, position)
        head = _head("index", source["chunk"], record.key, {})
        body = _line(source)[:-2] + b',"vector":' + vector + b"}\n"
        yield Action(record.id, head + body)


def label_chunks(record: DocumentRecord, columns: Columns) -> Iterator[Action]:
    """Give every chunk of the version that `record` tells these columns."""
    body = _line({"doc": columns.source()})
    for chunk in _chunk_ids(record.key, record.version):
        yield Action(record.id, _head("update", chunk, record.key, {}) + body)


def drop_chunks(record: DocumentRecord, version: Version) -> Iterator[Action]:
    for chunk in _chunk_ids(record.key, version):
        yield Action(record.id, _head("delete", chunk, record.key, {}))


def _chunk_ids(key: str, version: Version) -> Iterator[str]:
    return (chunk_id(key, version.name, position) for position in range(version.chunks))


def _condition(held: Held) -> dict[str, int]:
    return {"if_seq_no": held.sequence, "if_primary_term": held.term}


def _head(kind: _Kind, name: str, key: str, condition: dict[str, int]) -> bytes:
    return _line({kind: {"_id": name, "routing": key, **condition}})


def _line(body: Source | dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair is no character, and would spoil the whole request.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def _vector_texts(vectors: Vectors, quantisation: Quantisation) -> Iterator[bytes]:
    """JSON of each; seven places keep a cosine to a ten-millionth."""
    rows: NDArray[np.generic] = (
        np.rint(vectors * BYTE).astype(np.int8)
        if quantisation == "byte"
        else np.round(vectors.astype(np.float64), DIGITS)
    )
    for row in np.ascontiguousarray(rows):
        yield orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY)
