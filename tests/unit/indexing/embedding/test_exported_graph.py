"""Networks that a model carries ready-made are read as they are, from OpenVINO and ONNX files."""

import json
from pathlib import Path

import numpy as np
import pytest

from indexing.embedding.bert_config import read_bert_config
from indexing.embedding.bert_graph import BertWeights, build_bert
from indexing.embedding.exported_graph import can_read_exported, read_exported
from indexing.embedding.graph_nodes import ov_ops, save_graph, token_inputs
from indexing.embedding.model_building import build_model, plan_graph
from indexing.embedding.model_config import UnsupportedModelError, read_model_config
from indexing.embedding.openvino_embedder import OpenVinoEmbedder
from indexing.embedding.safetensors_file import ModelWeights
from tests.support.models import WORDS, write_tiny_bert
from tests.support.onnx_file import write_onnx_encoder

TEXTS = ["travel", "travel is approved", "the manager approved travel by the manager " * 3, ""]
ENCODER_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TABLE = np.random.default_rng(3).standard_normal((len(WORDS), 4)).astype(np.float32)
KINDS = np.array([[1, 0, 0, 0], [9, 9, 9, 9]], np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of another family: its weights say nothing without code for it."""
    write_tiny_bert(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps({**settings, "model_type": "another"}))
    return tmp_path / "model"


def load(folder: Path, home: Path) -> OpenVinoEmbedder:
    home.mkdir()
    return OpenVinoEmbedder(home, build_model(plan_graph(folder), "model", "1", home))


def test_without_such_a_file_another_family_is_not_built(folder: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="architecture is another"):
        plan_graph(folder)


def test_an_openvino_file_is_read(folder: Path, tmp_path: Path) -> None:
    (folder / "openvino").mkdir()
    weights = ModelWeights.from_folder(folder)
    assert weights is not None
    inputs = token_inputs()
    architecture = {**read_model_config(folder).architecture, "model_type": "bert"}
    tokens = build_bert(read_bert_config(architecture), BertWeights(weights), inputs)
    save_graph(inputs, tokens, folder / "openvino")
    for ending in ("xml", "bin"):
        name = f"openvino_model.{ending}"
        (folder / "openvino" / f"model.{ending}").rename(folder / "openvino" / name)
    exported = load(folder, tmp_path / "exported").embed_passages(TEXTS)
    (folder / "config.json").write_text(json.dumps(architecture))
    built = load(folder, tmp_path / "built").embed_passages(TEXTS)
    np.testing.assert_allclose(exported, built, atol=1e-2)


def test_an_onnx_file_is_read(folder: Path, tmp_path: Path) -> None:
    write_onnx_encoder(folder / "onnx" / "model.onnx", TABLE, KINDS, ENCODER_INPUTS)
    vectors = load(folder, tmp_path / "exported").embed_passages(["travel is", ""])
    ids = [[2, 4, 5, 3], [2, 3]]
    expected = np.array([(TABLE[each] + KINDS[0]).mean(axis=0) for each in ids])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-2)


def test_an_input_that_is_not_known_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    write_onnx_encoder(file, TABLE, KINDS, (*ENCODER_INPUTS, "task_id"))
    with pytest.raises(UnsupportedModelError, match="task_id"):
        read_exported(file, token_inputs())
    assert not can_read_exported(file)


def test_a_network_without_vectors_of_tokens_is_refused(tmp_path: Path) -> None:
    inputs = token_inputs()
    summed = ov_ops.reduce_sum(ov_ops.convert(inputs.ids, np.float32), 1, keep_dims=True)
    save_graph(inputs, ov_ops.add(summed, ov_ops.convert(inputs.mask, np.float32)), tmp_path)
    with pytest.raises(UnsupportedModelError, match="for each token"):
        read_exported(tmp_path / "model.xml", token_inputs())


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"no such file")
    with pytest.raises(UnsupportedModelError, match=r"cannot read model\.onnx"):
        read_exported(file, token_inputs())
