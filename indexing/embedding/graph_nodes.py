"""Makes, reads and saves the graphs that OpenVINO runs; what a model is prepared with, and no search."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import openvino as ov  # type: ignore[import-untyped]
from numpy.typing import NDArray

from indexing.embedding.openvino_embedder import MODEL_FILE

ov_ops = ov.opset13
Node: TypeAlias = Any
"""A node of a graph; the library has no types."""
INPUT_NAMES = ("input_ids", "attention_mask")


@dataclass(frozen=True, slots=True)
class TokenInputs:
    """What every network here is given, as nodes: both of shape (texts, tokens)."""

    ids: Node
    mask: Node


def token_inputs() -> TokenInputs:
    """Make the inputs of a new graph, for any number of texts and tokens."""
    return TokenInputs(*map(_token_input, INPUT_NAMES))


def _token_input(name: str) -> Node:
    node = ov_ops.parameter([-1, -1], np.int64, name)
    node.output(0).set_names({name})
    return node


def constant(values: NDArray[Any]) -> Node:
    """Make a node of weights, without copying them; they are computed with in 32 bits."""
    node = ov.op.Constant(np.require(values, requirements=["C", "A"]), shared_memory=True)
    return node if values.dtype == np.float32 else ov_ops.convert(node, np.float32)


def linear(hidden: Node, weight: Node, bias: Node | None = None) -> Node:
    product = ov_ops.matmul(hidden, weight, transpose_a=False, transpose_b=True)
    return product if bias is None else ov_ops.add(product, bias)


def token_range(ids: Node) -> Node:
    """Return the numbers from 0 up to the number of tokens of a text."""
    tokens = ov_ops.gather(ov_ops.shape_of(ids), np.int64(1), 0)
    return ov_ops.range(np.int64(0), tokens, np.int64(1), output_type="i64")


def read_network(file: Path) -> Node:
    """Read an OpenVINO or ONNX file.

    Raises:
        RuntimeError: it is damaged, or uses something that OpenVINO does not know.
    """
    return ov.Core().read_model(file)


def save_graph(inputs: TokenInputs, vectors: Node, folder: Path) -> None:
    """Save a network with 16-bit weights."""
    model = ov.Model([vectors], [inputs.ids, inputs.mask], "embedder")
    ov.save_model(model, folder / MODEL_FILE, compress_to_fp16=True)


def save_converted(traceable: object, example: Mapping[str, object], folder: Path) -> None:
    """Trace a torch module with example inputs, and save it with 16-bit weights."""
    converted = ov.convert_model(traceable, example_input=dict(example))
    ov.save_model(converted, folder / MODEL_FILE, compress_to_fp16=True)
