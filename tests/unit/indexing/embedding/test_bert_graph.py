"""What is built of a configuration and its weights, and what is left to sentence-transformers.

That the vectors are right is tested in test_equality.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from indexing.embedding.bert_config import read_bert_config
from indexing.embedding.bert_graph import (
    BertWeights,
    check_weights,
    distance_buckets,
    position_limit,
)
from indexing.embedding.model_config import UnsupportedModelError
from indexing.embedding.safetensors_file import ModelWeights
from tests.support.models import write_tiny_bert

BERT = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture
def weights_file(tmp_path: Path) -> Path:
    write_tiny_bert(tmp_path / "tiny")
    return tmp_path / "tiny" / "model.safetensors"


def read(file: Path) -> BertWeights:
    weights = ModelWeights.from_folder(file.parent)
    assert weights is not None
    return BertWeights(weights)


def rewrite(file: Path, rename: dict[str, str | None]) -> None:
    """Write the weights under other names; those that become None are left out."""
    named = {rename.get(name, name): value for name, value in load_file(file).items()}
    save_file({name: value for name, value in named.items() if name}, file)


def test_names_may_have_a_prefix_and_norms_their_old_names(weights_file: Path) -> None:
    check_weights(read_bert_config(BERT), read(weights_file))
    names = read(weights_file).names
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    rename: dict[str, str | None] = {}
    for name in names:
        ending = next((each for each in old if name.endswith(each)), "")
        rename[name] = f"bert.{name.removesuffix(ending)}{old.get(ending, '')}"
    rewrite(weights_file, rename)
    renamed = read(weights_file)
    check_weights(read_bert_config(BERT), renamed)
    assert renamed.names == names


def test_heads_of_other_tasks_are_left_aside(weights_file: Path) -> None:
    values = load_file(weights_file)
    head = {"pooler.dense.weight": np.ones((16, 16), np.float32)}
    save_file({**values, **head}, weights_file)
    check_weights(read_bert_config(BERT), read(weights_file))


@pytest.mark.parametrize(
    ("rename", "reason"),
    [
        ({"embeddings.LayerNorm.bias": None}, "no weights embeddings.LayerNorm.bias"),
        ({"encoder.layer.0.output.dense.bias": "encoder.layer.0.other"}, "no weights"),
    ],
)
def test_incomplete_weights_are_not_built(
    rename: dict[str, str | None], reason: str, weights_file: Path
) -> None:
    rewrite(weights_file, rename)
    with pytest.raises(UnsupportedModelError, match=reason):
        check_weights(read_bert_config(BERT), read(weights_file))


def test_weights_of_a_variant_are_not_built(weights_file: Path) -> None:
    extra = {"encoder.layer.0.adapter.weight": np.ones((1, 1), np.float32)}
    save_file({**load_file(weights_file), **extra}, weights_file)
    with pytest.raises(UnsupportedModelError, match="unknown weights encoder"):
        check_weights(read_bert_config(BERT), read(weights_file))
    with pytest.raises(UnsupportedModelError, match="no weights"):
        check_weights(read_bert_config({**BERT, "num_hidden_layers": 2}), read(weights_file))


def test_weights_of_another_size_are_not_built(weights_file: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="size"):
        check_weights(read_bert_config({**BERT, "hidden_size": 32}), read(weights_file))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "albert"}, "architecture is albert"),
        ({"model_type": None}, "architecture"),
        ({"auto_map": {"AutoModel": "modeling.Own"}}, "architecture"),
        ({"hidden_act": "mish"}, "activation is mish"),
        ({"is_decoder": True}, "decoder"),
        ({"position_embedding_type": "relative_key"}, "positions"),
    ],
)
def test_variants_of_the_architecture_are_not_built(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        read_bert_config({**BERT, **change})


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        ({}, 12),
        ({"model_type": "roberta"}, 10),
        ({"model_type": "xlm-roberta", "pad_token_id": 0}, 11),
        ({"model_type": "mpnet", "pad_token_id": 3}, 10),
        ({"model_type": "distilbert"}, 12),
    ],
)
def test_positions_after_the_padding_index_limit_a_text(
    change: dict[str, Any], limit: int, weights_file: Path
) -> None:
    assert position_limit(read_bert_config({**BERT, **change}), read(weights_file)) == limit


def test_distances_fall_into_buckets_by_sign_and_logarithm() -> None:
    near = np.arange(8)
    np.testing.assert_array_equal(distance_buckets(-near), near)
    np.testing.assert_array_equal(distance_buckets(near[1:]), 16 + near[1:])
    borders = np.array([8, 11, 12, 15, 16, 31, 32, 63, 64, 127, 128, 600])
    buckets = [8, 8, 9, 9, 10, 11, 12, 13, 14, 15, 15, 15]
    np.testing.assert_array_equal(distance_buckets(-borders), buckets)
    np.testing.assert_array_equal(distance_buckets(borders), 16 + np.array(buckets))
