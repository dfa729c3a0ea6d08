"""Pooling, dense layers and normalization compute what numpy does, whichever side is padded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov  # type: ignore[import-untyped]
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from indexing.embedding.graph_nodes import ov_ops
from indexing.embedding.model_config import (
    Dense,
    Module,
    Normalize,
    Pooling,
    PoolingMode,
    UnsupportedModelError,
)
from indexing.embedding.pooling_graph import append_modules, check_modules

WIDTH = 5
TOKENS = np.random.default_rng(1).standard_normal((3, 4, WIDTH)).astype(np.float32)
RIGHT = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
LEFT = RIGHT[:, ::-1].copy()


def compute(modules: Sequence[Module], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    tokens = ov_ops.parameter([-1, -1, WIDTH], np.float32)
    given = ov_ops.parameter([-1, -1], np.int64)
    model = ov.Model([append_modules(tokens, given, modules)], [tokens, given], "test")
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    result = ov.Core().compile_model(model, "CPU", settings)([TOKENS, mask])
    vectors: NDArray[np.float32] = result[0]
    return vectors


def pool(mode: PoolingMode, vectors: NDArray[np.float32]) -> Any:
    """Pool the vectors of one text, without padding."""
    match mode:
        case "cls":
            return vectors[0]
        case "lasttoken":
            return vectors[-1]
        case "max":
            return vectors.max(axis=0)
        case "mean":
            return vectors.mean(axis=0)
        case "mean_sqrt_len_tokens":
            return vectors.sum(axis=0) / np.sqrt(np.float32(len(vectors)))
        case "weightedmean":
            return np.average(vectors, axis=0, weights=np.arange(len(vectors)) + 1)


@pytest.mark.parametrize("mask", [RIGHT, LEFT], ids=["right", "left"])
@pytest.mark.parametrize(
    "mode", ["cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"]
)
def test_padding_does_not_count(mode: PoolingMode, mask: NDArray[np.int64]) -> None:
    expected = [pool(mode, vectors[text == 1]) for vectors, text in zip(TOKENS, mask, strict=True)]
    np.testing.assert_allclose(compute([Pooling((mode,))], mask), expected, atol=1e-5)


def test_vectors_of_two_poolings_lie_one_after_the_other() -> None:
    both = compute([Pooling(("cls", "max"))], RIGHT)
    np.testing.assert_array_equal(both[:, :WIDTH], compute([Pooling(("cls",))], RIGHT))
    np.testing.assert_array_equal(both[:, WIDTH:], compute([Pooling(("max",))], RIGHT))


def test_modules_follow_in_their_order(tmp_path: Path) -> None:
    weight = np.random.default_rng(2).standard_normal((2, WIDTH)).astype(np.float32)
    bias = np.array([1, -1], np.float32)
    save_file({"linear.weight": weight, "linear.bias": bias}, tmp_path / "model.safetensors")
    modules: list[Module] = [Pooling(("mean",)), Normalize(), Dense(tmp_path, "Tanh"), Normalize()]
    check_modules(modules)
    unit = compute([Pooling(("mean",))], RIGHT)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    expected: NDArray[np.float32] = np.tanh(unit @ weight.T + bias)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(compute(modules, RIGHT), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("names", "activation", "reason"),
    [
        ([], "Tanh", "no safetensors"),
        (["linear.weight", "other.weight"], "Tanh", "other weights"),
        (["linear.weight"], "Softsign", "Softsign"),
    ],
)
def test_another_dense_layer_is_not_built(
    names: list[str], activation: str, reason: str, tmp_path: Path
) -> None:
    if names:
        save_file({n: np.ones((1, 1), np.float32) for n in names}, tmp_path / "model.safetensors")
    with pytest.raises(UnsupportedModelError, match=reason):
        check_modules([Dense(tmp_path, activation)])
