"""Weights are read in each type, from one file or several, and damage is noticed."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from indexing.embedding.safetensors_file import DamagedWeightsError, ModelWeights

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3) / 7


def read(folder: Path) -> ModelWeights:
    weights = ModelWeights.from_folder(folder)
    assert weights is not None
    return weights


def write_raw(path: Path, dtype: str, data: bytes, shape: tuple[int, ...] = (2, 3)) -> None:
    header = {"rows": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_file_of_the_library_is_read(dtype: type[np.floating], tmp_path: Path) -> None:
    save_file(
        {"rows": ROWS.astype(dtype), "one": np.ones(5, dtype)},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    weights = read(tmp_path)
    assert weights.names == {"rows", "one"}
    assert weights.shape("rows") == (2, 3)
    np.testing.assert_array_equal(weights.read("rows"), ROWS.astype(dtype))
    np.testing.assert_array_equal(weights.read("one"), np.ones(5, dtype))


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    halves = (ROWS.view(np.uint32) >> 16).astype(np.uint16)
    write_raw(tmp_path / "model.safetensors", "BF16", halves.tobytes())
    read_rows = read(tmp_path).read("rows")
    assert read_rows.dtype == np.float32
    np.testing.assert_allclose(read_rows, ROWS, rtol=2**-7)


def test_a_model_may_lie_in_several_files(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file({"a": ROWS}, tmp_path / "model-1.safetensors")
    with pytest.raises(DamagedWeightsError, match=r"lacks model-2\.safetensors"):
        ModelWeights.from_folder(tmp_path)
    save_file({"b": 2 * ROWS}, tmp_path / "model-2.safetensors")
    np.testing.assert_array_equal(read(tmp_path).read("b"), 2 * ROWS)


def test_no_weights_are_none(tmp_path: Path) -> None:
    assert ModelWeights.from_folder(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01",
        b"<html>not found</html>",
        (4).to_bytes(8, "little") + b"{{{{",
        (2).to_bytes(8, "little") + b"[]",
        (15).to_bytes(8, "little") + b'{"a": {"b": 1}}',
        (1 << 40).to_bytes(8, "little") + b"{}",
    ],
)
def test_what_is_no_such_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(DamagedWeightsError, match=r"model\.safetensors"):
        ModelWeights.from_folder(tmp_path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"rows": ROWS}, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedWeightsError, match="truncated"):
        ModelWeights.from_folder(tmp_path)


@pytest.mark.parametrize(("dtype", "shape"), [("I64", (3, 1)), ("F32", (2, 4)), ("F32", (7,))])
def test_a_tensor_of_another_type_or_size_is_refused(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    write_raw(tmp_path / "model.safetensors", dtype, ROWS.tobytes(), shape)
    with pytest.raises(DamagedWeightsError, match="rows"):
        read(tmp_path).read("rows")
