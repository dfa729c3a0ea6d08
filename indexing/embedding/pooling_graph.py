"""Appends pooling, dense layers and normalization to a transformer, as modules.json lists them."""

from collections.abc import Callable, Iterable

import numpy as np

from indexing.embedding.graph_nodes import Node, constant, linear, ov_ops
from indexing.embedding.model_config import (
    Dense,
    Module,
    Normalize,
    Pooling,
    PoolingMode,
    UnsupportedModelError,
)
from indexing.embedding.safetensors_file import ModelWeights

_SMALLEST_SUM = np.float32(1e-9)
_SMALLEST_LENGTH = 1e-12
_WEIGHT, _BIAS = "linear.weight", "linear.bias"
_LOWEST = np.float32(-65504)
_DENSE_ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "Identity": lambda node: node,
    "Tanh": ov_ops.tanh,
    "ReLU": ov_ops.relu,
    "GELU": lambda node: ov_ops.gelu(node, "erf"),
}


def append_modules(tokens: Node, mask: Node, modules: Iterable[Module]) -> Node:
    """Make one vector of each text out of the vectors of its tokens.

    Args:
        tokens: of shape (texts, tokens, width).
        mask: of shape (texts, tokens), 1 where there is text and 0 where there is padding.
    """
    vectors = tokens
    for module in modules:
        match module:
            case Pooling(modes=modes):
                pooled = [_pool(mode, vectors, mask) for mode in modes]
                vectors = ov_ops.concat(pooled, axis=-1) if len(pooled) > 1 else pooled[0]
            case Dense():
                vectors = _apply_dense(module, vectors)
            case Normalize():
                vectors = ov_ops.normalize_l2(vectors, [-1], _SMALLEST_LENGTH, "max")
    return vectors


def _pool(mode: PoolingMode, tokens: Node, mask: Node) -> Node:
    if mode == "max":
        is_text = ov_ops.unsqueeze(ov_ops.convert(mask, np.bool_), 2)
        return ov_ops.reduce_max(ov_ops.select(is_text, tokens, _LOWEST), 1)
    weights = ov_ops.convert(_token_weights(mode, mask), np.float32)
    product = ov_ops.matmul(
        ov_ops.unsqueeze(weights, 1), tokens, transpose_a=False, transpose_b=False
    )
    summed = ov_ops.squeeze(product, 1)
    total = ov_ops.maximum(ov_ops.reduce_sum(weights, 1, keep_dims=True), _SMALLEST_SUM)
    return ov_ops.divide(summed, ov_ops.sqrt(total) if mode == "mean_sqrt_len_tokens" else total)


def _token_weights(mode: PoolingMode, mask: Node) -> Node:
    """Return how much each token counts: all but the maximum are weighted means."""
    position = ov_ops.multiply(ov_ops.cum_sum(mask, np.int64(1)), mask)
    match mode:
        case "cls":
            return ov_ops.equal(position, np.int64(1))
        case "lasttoken":
            last = ov_ops.maximum(ov_ops.reduce_max(position, 1, keep_dims=True), np.int64(1))
            return ov_ops.equal(position, last)
        case "weightedmean":
            return position
        case _:
            return mask


def check_modules(modules: Iterable[Module]) -> None:
    """Check that all modules are of kinds that can be built.

    Raises:
        UnsupportedModelError: a dense layer has another activation or other weights.
    """
    for module in modules:
        if isinstance(module, Dense):
            _read_dense_weights(module)
            if module.activation not in _DENSE_ACTIVATIONS:
                raise UnsupportedModelError(f"its dense layer's activation is {module.activation}")


def _apply_dense(dense: Dense, vectors: Node) -> Node:
    weights = _read_dense_weights(dense)
    bias = constant(weights.read(_BIAS)) if _BIAS in weights.names else None
    return _DENSE_ACTIVATIONS[dense.activation](
        linear(vectors, constant(weights.read(_WEIGHT)), bias)
    )


def _read_dense_weights(dense: Dense) -> ModelWeights:
    weights = ModelWeights.from_folder(dense.folder)
    if weights is None or not {_WEIGHT} <= weights.names <= {_WEIGHT, _BIAS}:
        raise UnsupportedModelError("its dense layer has no safetensors, or other weights")
    return weights
