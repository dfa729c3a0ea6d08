"""Reads transformers that a model's folder carries ready-made, as OpenVINO or ONNX files."""

from pathlib import Path

import numpy as np

from indexing.embedding.graph_nodes import Node, TokenInputs, ov_ops, read_network, token_inputs
from indexing.embedding.model_config import UnsupportedModelError

_TOKEN_OUTPUT_RANK = 3
_EXPORTED_FILES = (
    ("openvino/openvino_model.xml", "openvino/openvino_model.bin"),
    ("onnx/model.onnx", "onnx/model.onnx"),
)
"""In the order of preference, each with the file of its weights."""


def exported_files(folder: Path) -> list[Path]:
    """List the networks that a model's folder carries ready-made, the best first."""
    return [folder / name for name, needed in _EXPORTED_FILES if (folder / needed).is_file()]


def can_read_exported(file: Path) -> bool:
    try:
        read_exported(file, token_inputs())
    except UnsupportedModelError:
        return False
    return True


def read_exported(file: Path, inputs: TokenInputs) -> Node:
    """Read a transformer: vectors of shape (texts, tokens, width).

    Raises:
        UnsupportedModelError: it cannot be read, or its inputs and outputs are not those of an encoder.
    """
    try:
        network = read_network(file)
    except RuntimeError as error:
        raise UnsupportedModelError(f"OpenVINO cannot read {file.name}") from error
    for given in network.inputs:
        node = _input_node(given.get_names(), inputs)
        if any(length.is_static for length in given.get_partial_shape()):
            raise UnsupportedModelError(f"{file.name} takes texts of one length only")
        typed = ov_ops.convert(node, given.get_element_type())
        for target in given.get_target_inputs():
            target.replace_source_output(typed.output(0))
    outputs = [
        each for each in network.outputs if len(each.get_partial_shape()) == _TOKEN_OUTPUT_RANK
    ]
    if not outputs:
        raise UnsupportedModelError(f"{file.name} does not give a vector for each token")
    return outputs[0].get_node().input_value(0)


def _input_node(names: set[str], inputs: TokenInputs) -> Node:
    if "input_ids" in names:
        return inputs.ids
    if "attention_mask" in names:
        return inputs.mask
    if "token_type_ids" in names:
        return ov_ops.multiply(inputs.mask, np.int64(0))
    raise UnsupportedModelError(f"it wants an input {', '.join(sorted(names))}")
