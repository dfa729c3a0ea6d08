"""Models built here give the vectors of sentence-transformers, architecture by architecture."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexing.embedding import model_building
from indexing.embedding.embedder import Vectors
from indexing.embedding.model_building import build_model, plan_graph
from indexing.embedding.model_loading import find_model
from indexing.embedding.openvino_embedder import OpenVinoEmbedder
from indexing.embedding.sentence_transformers_model import is_conversion_installed
from indexing.runtime.deadline import Deadline
from tests.support.models import MINILM
from tests.support.tiny_transformers import TinyModel
from tests.support.torch_side import ask

pytestmark = pytest.mark.skipif(not is_conversion_installed(), reason="needs the extra `models`")

MIN_COSINE = 0.9999
TEXTS = [
    "Who approves travel abroad?",
    "a",
    "",
    "The deposit is paid back, less the cost of repairs.",
    "Größe, Übermaß und Café: nicht das Gerät",
    "年休は日です。",
    "Отмени это.",
    "UPPER lower MiXeD 12,345.67",
    "   spaces   between\twords \n and lines",
    "<s> </s> <pad> [PAD] [CLS] in a text",
    "word " * 60,
    "long text beyond the limit " * 200,
    "年休は日語" * 300,
]
ALL_MODELS = [
    TinyModel(name="bert", architecture="bert"),
    TinyModel(name="bert-normalized", architecture="bert", normalize=True),
    TinyModel(name="bert-cls", architecture="bert", pooling="cls"),
    TinyModel(name="bert-max", architecture="bert", pooling="max", normalize=True),
    TinyModel(name="bert-two-poolings", architecture="bert", pooling=["cls", "mean"]),
    TinyModel(
        name="bert-cased",
        architecture="bert",
        tokenizer={"do_lower_case": False, "tokenize_chinese_chars": False},
    ),
    TinyModel(
        name="bert-accents",
        architecture="bert",
        tokenizer={"do_lower_case": True, "strip_accents": False},
    ),
    TinyModel(
        name="bert-lowercase-configured",
        architecture="bert",
        tokenizer={"do_lower_case": False},
        lower_case=True,
    ),
    TinyModel(
        name="bert-prompts",
        architecture="bert",
        prompts={"query": "query: ", "document": "passage: "},
    ),
    TinyModel(name="bert-dense", architecture="bert", dense="Tanh", normalize=True),
    TinyModel(name="bert-dense-identity", architecture="bert", dense="Identity"),
    TinyModel(name="bert-shards", architecture="bert", shard="30KB"),
    TinyModel(name="bert-bfloat16", architecture="bert", dtype="bfloat16"),
    TinyModel(name="bert-float16", architecture="bert", dtype="float16"),
    *(
        TinyModel(name=f"bert-{act}", architecture="bert", settings={"hidden_act": act})
        for act in ("gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu", "tanh")
    ),
    TinyModel(name="bert-left", architecture="bert", tokenizer={"padding_side": "left"}),
    TinyModel(name="roberta", architecture="roberta", normalize=True),
    TinyModel(
        name="roberta-cls",
        architecture="roberta",
        pooling="cls",
        settings={"layer_norm_eps": 1e-5, "type_vocab_size": 1},
    ),
    TinyModel(name="roberta-left", architecture="roberta", tokenizer={"padding_side": "left"}),
    TinyModel(name="xlm-roberta", architecture="xlm-roberta", normalize=True),
    TinyModel(name="xlm-roberta-sqrt", architecture="xlm-roberta", pooling="mean_sqrt_len_tokens"),
    TinyModel(name="mpnet", architecture="mpnet", normalize=True),
    TinyModel(
        name="mpnet-max", architecture="mpnet", pooling="max", settings={"layer_norm_eps": 1e-5}
    ),
    TinyModel(name="distilbert", architecture="distilbert", pooling="lasttoken"),
    TinyModel(name="distilbert-mean", architecture="distilbert"),
    TinyModel(name="camembert", architecture="camembert", pooling="weightedmean"),
]
NAMES = [model.name for model in ALL_MODELS]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("models")
    return {name: home / name for name in NAMES}


@pytest.fixture(scope="module")
def expected(folders: dict[str, Path]) -> dict[str, Any]:
    home = str(folders[NAMES[0]].parent)
    answer = ask(
        {
            "written": [{"model": asdict(model), "home": home} for model in ALL_MODELS],
            "reference": [{"folder": str(folder), "texts": TEXTS} for folder in folders.values()],
        }
    )
    return dict(zip(folders, answer["reference"], strict=True))


def min_cosine(ours: Vectors, theirs: Any) -> float:
    return float((ours * np.asarray(theirs)).sum(axis=1).min())


@pytest.mark.soak("release")
@pytest.mark.parametrize("name", NAMES)
def test_vectors_equal_those_of_sentence_transformers(
    name: str,
    folders: dict[str, Path],
    expected: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_building, "detect_native_precision", lambda: "f32")
    check_equal(folders[name], tmp_path, expected[name])


@pytest.mark.soak("slow")
def test_the_default_model_gives_the_vectors_of_sentence_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_building, "detect_native_precision", lambda: "f32")
    folder = find_model(MINILM).folder
    (expected,) = ask({"reference": [{"folder": str(folder), "texts": TEXTS}]})["reference"]
    check_equal(folder, tmp_path, expected)


def check_equal(folder: Path, target: Path, expected: Any) -> None:
    embedder = OpenVinoEmbedder(target, build_model(plan_graph(folder), "built", "1", target))
    passages = embedder.embed_passages(TEXTS)
    assert min_cosine(passages, expected["passages"]) >= MIN_COSINE
    queries = embedder.embed_queries(TEXTS, Deadline.after(60))
    assert min_cosine(queries, expected["queries"]) >= MIN_COSINE
    # The texts differ, so that equality means something.
    assert (passages @ passages.T)[0, 1:].min() < 0.99
