"""Writes a tiny encoder in the ONNX format: tables of vectors for words and kinds of tokens, added."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FLOAT, _INT64 = 1, 7
_OPSET = 13


def write_onnx_encoder(
    path: Path, words: NDArray[np.float32], kinds: NDArray[np.float32], inputs: Sequence[str]
) -> None:
    """Write `last_hidden_state = words[input_ids] + kinds[token_type_ids]`.

    Args:
        inputs: names that the model asks for; what is not used is asked for all the same.
    """
    lookups = [("input_ids", "words"), ("token_type_ids", "kinds")]
    gathers = [_node("Gather", [table, ids], f"{table} of tokens") for ids, table in lookups]
    total = _node("Add", [f"{table} of tokens" for _, table in lookups], "last_hidden_state")
    graph = b"".join(
        [
            *(_field(1, node) for node in (*gathers, total)),
            _field(2, b"encoder"),
            *(
                _field(5, _tensor(name, table))
                for name, table in (("words", words), ("kinds", kinds))
            ),
            *(_field(11, _value(name, _INT64, ("batch", "tokens"))) for name in inputs),
            _field(12, _value("last_hidden_state", _FLOAT, ("batch", "tokens", words.shape[1]))),
        ]
    )
    opset = _field(1, b"") + _number(2, _OPSET)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_number(1, 8) + _field(7, graph) + _field(8, opset))


def _node(operation: str, inputs: Iterable[str], output: str) -> bytes:
    given = b"".join(_field(1, name.encode()) for name in inputs)
    return given + _field(2, output.encode()) + _field(4, operation.encode())


def _tensor(name: str, values: NDArray[np.float32]) -> bytes:
    lengths = b"".join(_number(1, length) for length in values.shape)
    return lengths + _number(2, _FLOAT) + _field(8, name.encode()) + _field(9, values.tobytes())


def _value(name: str, kind: int, lengths: Iterable[str | int]) -> bytes:
    dimensions = b"".join(_field(1, _dimension(length)) for length in lengths)
    tensor_type = _number(1, kind) + _field(2, dimensions)
    return _field(1, name.encode()) + _field(2, _field(1, tensor_type))


def _dimension(length: str | int) -> bytes:
    return _number(1, length) if isinstance(length, int) else _field(2, length.encode())


def _field(number: int, content: bytes) -> bytes:
    """Encode a protobuf field of bytes, text or a message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
