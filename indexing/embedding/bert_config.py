"""Reads what config.json says about a transformer of the BERT family.

BERT, RoBERTa, CamemBERT, XLM-RoBERTa, MPNet and DistilBERT are one design under different names of
weights: they differ in how positions are numbered and in whether attention has a position bias.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from indexing.embedding.graph_nodes import Node, ov_ops
from indexing.embedding.model_config import UnsupportedModelError, is_bert_family

_MPNET_PADDING = 1
"""Fixed in the model's code, whatever its configuration says."""
_ABSOLUTE = "absolute"
_STANDARD_KEYS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "activation": "hidden_act",
}
"""What DistilBERT calls otherwise."""

_ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "gelu": partial(ov_ops.gelu, approximation_mode="erf"),
    "gelu_python": partial(ov_ops.gelu, approximation_mode="erf"),
    "gelu_new": partial(ov_ops.gelu, approximation_mode="tanh"),
    "gelu_fast": partial(ov_ops.gelu, approximation_mode="tanh"),
    "gelu_pytorch_tanh": partial(ov_ops.gelu, approximation_mode="tanh"),
    "gelu_python_tanh": partial(ov_ops.gelu, approximation_mode="tanh"),
    "relu": ov_ops.relu,
    "silu": ov_ops.swish,
    "swish": ov_ops.swish,
    "tanh": ov_ops.tanh,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNames:
    """What an architecture calls the weights of one layer."""

    layer: str
    query: str
    key: str
    value: str
    attention_output: str
    attention_norm: str
    intermediate: str
    output: str
    output_norm: str


_BERT_NAMES = LayerNames(
    layer="encoder.layer.{}.",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    intermediate="intermediate.dense",
    output="output.dense",
    output_norm="output.LayerNorm",
)
_MPNET_NAMES = LayerNames(
    layer="encoder.layer.{}.",
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attention_output="attention.attn.o",
    attention_norm="attention.LayerNorm",
    intermediate="intermediate.dense",
    output="output.dense",
    output_norm="output.LayerNorm",
)
_DISTILBERT_NAMES = LayerNames(
    layer="transformer.layer.{}.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attention_output="attention.out_lin",
    attention_norm="sa_layer_norm",
    intermediate="ffn.lin1",
    output="ffn.lin2",
    output_norm="output_layer_norm",
)
_LAYER_NAMES = {
    "bert": _BERT_NAMES,
    "roberta": _BERT_NAMES,
    "camembert": _BERT_NAMES,
    "xlm-roberta": _BERT_NAMES,
    "mpnet": _MPNET_NAMES,
    "distilbert": _DISTILBERT_NAMES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """The numbers in config.json that say how the weights are put together."""

    names: LayerNames
    width: int
    layers: int
    heads: int
    activation: Callable[[Node], Node]
    norm_epsilon: float
    padding_index: int | None
    """Positions are counted from the one after it; None: from 0, padding included."""
    token_types: bool
    position_bias: bool


def read_bert_config(architecture: Mapping[str, Any]) -> BertConfig:
    """Read a config.json.

    Raises:
        UnsupportedModelError: it asks for something that is not built here.
    """
    if not is_bert_family(architecture):
        raise UnsupportedModelError(f"its architecture is {architecture.get('model_type')}")
    model_type = architecture["model_type"]
    values = {_STANDARD_KEYS.get(key, key): value for key, value in architecture.items()}
    activation = values.get("hidden_act", "gelu")
    if activation not in _ACTIVATIONS:
        raise UnsupportedModelError(f"its activation is {activation}")
    if values.get("is_decoder") or values.get("position_embedding_type", _ABSOLUTE) != _ABSOLUTE:
        raise UnsupportedModelError("it is a decoder, or its positions are not absolute")
    return BertConfig(
        names=_LAYER_NAMES[model_type],
        width=int(values.get("hidden_size", 768)),
        layers=int(values.get("num_hidden_layers", 6 if model_type == "distilbert" else 12)),
        heads=int(values.get("num_attention_heads", 12)),
        activation=_ACTIVATIONS[activation],
        norm_epsilon=float(values.get("layer_norm_eps", 1e-12)),
        padding_index=_padding_index(model_type, values),
        token_types=model_type not in ("mpnet", "distilbert"),
        position_bias=model_type == "mpnet",
    )


def _padding_index(model_type: str, values: Mapping[str, Any]) -> int | None:
    match model_type:
        case "bert" | "distilbert":
            return None
        case "mpnet":
            return _MPNET_PADDING
        case _:
            return int(values.get("pad_token_id", 1))
