"""Builds the transformers of the BERT family out of OpenVINO's operations, from their weights."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexing.embedding.bert_config import BertConfig
from indexing.embedding.graph_nodes import Node, TokenInputs, constant, linear, ov_ops, token_range
from indexing.embedding.model_config import UnsupportedModelError
from indexing.embedding.safetensors_file import ModelWeights

_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
_POSITION_BIAS = "encoder.relative_attention_bias.weight"
_BIAS_BUCKETS = 32
_BIAS_MAX_DISTANCE = 128
_UNUSED = ("pooler.", "lm_head.", "cls.", "classifier.", "vocab_", "embeddings.position_ids")
"""Weights of heads for other tasks, and buffers without weights."""
_NORM = "embeddings.LayerNorm"
_MASKED = np.float32(-65504)
"""The lowest number of a half-precision float; no softmax leaves anything of it."""
_SWAP_HEADS = [0, 2, 1, 3]
"""(texts, tokens, heads, width of one) to (texts, heads, tokens, width of one), and back."""
_OLD_NORM_NAMES = {"gamma": "weight", "beta": "bias"}


class BertWeights:
    """The weights by the names that the architecture gives them.

    Some files call norms by the names of the first BERT, and put the model's name before every weight.
    """

    def __init__(self, weights: ModelWeights) -> None:
        self._weights = weights
        prefix = next(
            (name.removesuffix(_WORDS) for name in weights.names if name.endswith(_WORDS)), ""
        )
        self._stored = {_canonical_name(name.removeprefix(prefix)): name for name in weights.names}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._stored)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._weights.shape(self._stored[name])

    def read(self, name: str) -> NDArray[Any]:
        return self._weights.read(self._stored[name])


def _canonical_name(name: str) -> str:
    start, _, end = name.rpartition(".")
    return f"{start}.{_OLD_NORM_NAMES.get(end, end)}"


def check_weights(config: BertConfig, weights: BertWeights) -> None:
    """Check that the weights are those of the configuration: none missing, none unknown.

    Raises:
        UnsupportedModelError: they are of a variant of the architecture.
    """
    expected = set(_expected_names(config))
    if missing := expected - weights.names:
        raise UnsupportedModelError(f"it has no weights {min(missing)}")
    if unknown := {n for n in weights.names - expected if not n.startswith(_UNUSED)}:
        raise UnsupportedModelError(f"it has unknown weights {min(unknown)}")
    if weights.shape(_WORDS)[1:] != (config.width,):
        raise UnsupportedModelError("its weights are not of the size in config.json")


def _expected_names(config: BertConfig) -> Iterator[str]:
    yield from (_WORDS, _POSITIONS, f"{_NORM}.weight", f"{_NORM}.bias")
    if config.token_types:
        yield _TOKEN_TYPES
    if config.position_bias:
        yield _POSITION_BIAS
    names = config.names
    parts = [value for key, value in asdict(names).items() if key != "layer"]
    for layer in range(config.layers):
        for part in parts:
            yield f"{names.layer.format(layer)}{part}.weight"
            yield f"{names.layer.format(layer)}{part}.bias"


def position_limit(config: BertConfig, weights: BertWeights) -> int:
    """Return how many tokens have a position of their own."""
    first = 0 if config.padding_index is None else config.padding_index + 1
    return weights.shape(_POSITIONS)[0] - first


def build_bert(config: BertConfig, weights: BertWeights, inputs: TokenInputs) -> Node:
    """Build the transformer: vectors of shape (texts, tokens, width)."""
    graph = _Bert(config, weights)
    bias = graph.attention_bias(inputs)
    hidden = graph.embed(inputs)
    for layer in range(config.layers):
        hidden = graph.layer(config.names.layer.format(layer), hidden, bias)
    return hidden


@dataclass(frozen=True, slots=True)
class _Bert:
    config: BertConfig
    weights: BertWeights

    def embed(self, inputs: TokenInputs) -> Node:
        words = ov_ops.gather(self._constant(_WORDS), inputs.ids, 0)
        hidden = ov_ops.add(words, self._positions(inputs))
        if self.config.token_types:
            # Every token is of the first sentence.
            hidden = ov_ops.add(hidden, constant(self.weights.read(_TOKEN_TYPES)[0]))
        return self._norm(_NORM, hidden)

    def _positions(self, inputs: TokenInputs) -> Node:
        table = self._constant(_POSITIONS)
        padding = self.config.padding_index
        if padding is None:
            return ov_ops.gather(table, token_range(inputs.ids), 0)
        is_text = ov_ops.convert(ov_ops.not_equal(inputs.ids, np.int64(padding)), np.int64)
        counted = ov_ops.multiply(ov_ops.cum_sum(is_text, np.int64(1)), is_text)
        return ov_ops.gather(table, ov_ops.add(counted, np.int64(padding)), 0)

    def attention_bias(self, inputs: TokenInputs) -> Node:
        """Return what is added to attention scores, to broadcast to (texts, heads, tokens, tokens)."""
        is_text = ov_ops.unsqueeze(ov_ops.convert(inputs.mask, np.bool_), [1, 2])
        masked = ov_ops.select(is_text, np.float32(0), _MASKED)
        if not self.config.position_bias:
            return masked
        return ov_ops.add(masked, self._position_bias(inputs))

    def _position_bias(self, inputs: TokenInputs) -> Node:
        """Return the bias of each pair of positions by their distance: (1, heads, tokens, tokens)."""
        farthest = self.weights.shape(_POSITIONS)[0]
        distances = np.arange(-farthest, farthest + 1)
        by_distance = self.weights.read(_POSITION_BIAS)[distance_buckets(distances)]
        positions = token_range(inputs.ids)
        distance = ov_ops.subtract(ov_ops.unsqueeze(positions, 0), ov_ops.unsqueeze(positions, 1))
        places = ov_ops.add(distance, np.int64(farthest))
        bias = ov_ops.gather(constant(by_distance), places, 0)
        return ov_ops.unsqueeze(ov_ops.transpose(bias, [2, 0, 1]), 0)

    def layer(self, prefix: str, hidden: Node, bias: Node) -> Node:
        names = self.config.names
        attended = self._linear(
            prefix + names.attention_output, self._attention(prefix, hidden, bias)
        )
        hidden = self._norm(prefix + names.attention_norm, ov_ops.add(attended, hidden))
        inner = self.config.activation(self._linear(prefix + names.intermediate, hidden))
        output = self._linear(prefix + names.output, inner)
        return self._norm(prefix + names.output_norm, ov_ops.add(output, hidden))

    def _attention(self, prefix: str, hidden: Node, bias: Node) -> Node:
        names = self.config.names
        query, key, value = (
            self._split_heads(self._linear(prefix + name, hidden))
            for name in (names.query, names.key, names.value)
        )
        attended = ov_ops.scaled_dot_product_attention(query, key, value, bias)
        return ov_ops.reshape(
            ov_ops.transpose(attended, _SWAP_HEADS), [0, 0, self.config.width], special_zero=True
        )

    def _split_heads(self, hidden: Node) -> Node:
        heads = self.config.heads
        split = ov_ops.reshape(hidden, [0, 0, heads, self.config.width // heads], special_zero=True)
        return ov_ops.transpose(split, _SWAP_HEADS)

    def _linear(self, name: str, hidden: Node) -> Node:
        weight, bias = self._constant(f"{name}.weight"), self._constant(f"{name}.bias")
        return linear(hidden, weight, bias)

    def _norm(self, name: str, hidden: Node) -> Node:
        epsilon = self.config.norm_epsilon
        scaled = ov_ops.mvn(
            hidden, [-1], normalize_variance=True, eps=epsilon, eps_mode="inside_sqrt"
        )
        weight, bias = self._constant(f"{name}.weight"), self._constant(f"{name}.bias")
        return ov_ops.add(ov_ops.multiply(scaled, weight), bias)

    def _constant(self, name: str) -> Node:
        return constant(self.weights.read(name))


def distance_buckets(distances: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bucket of each distance from one token to another, as MPNet was trained.

    Half the buckets are for tokens before, half for tokens after; of these each near distance has
    one of its own, and far ones share buckets of logarithmic width.
    """
    half = _BIAS_BUCKETS // 2
    exact = half // 2
    length = np.abs(distances)
    # In float32 throughout, as in training: in float64 some distances fall into the next bucket.
    ratio = np.log(np.maximum(length, 1).astype(np.float32) / np.float32(exact))
    steps = ratio / np.float32(math.log(_BIAS_MAX_DISTANCE / exact)) * np.float32(half - exact)
    far = np.minimum(exact + steps.astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(length < exact, length, far)
