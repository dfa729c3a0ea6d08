"""Other models are converted by sentence-transformers, or run by it where that fails."""

import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.errors import NotConfiguredError
from indexing.embedding.model_loading import describe_model, load_embedder
from indexing.embedding.openvino_embedder import OpenVinoEmbedder
from indexing.embedding.sentence_transformers_model import is_conversion_installed
from indexing.runtime.deadline import Deadline
from tests.support.models import MODEL_CACHE, write_static_model
from tests.support.tiny_transformers import TinyModel
from tests.support.torch_side import ask

pytestmark = [
    pytest.mark.soak("release"),
    pytest.mark.skipif(not is_conversion_installed(), reason="needs the extra `models`"),
]

TEXTS = ["travel", "travel is approved", "the manager approved travel by the manager " * 3]
OTHER_FAMILY = TinyModel(
    name="electra",
    architecture="electra",
    settings={"embedding_size": 32},
    prompts={"query": "query: ", "document": "passage: "},
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("models")
    write_static_model(home / "static")
    return home


@pytest.fixture(scope="module")
def answers(home: Path) -> dict[str, Any]:
    return ask(
        {
            "written": [{"model": asdict(OTHER_FAMILY), "home": str(home)}],
            "reference": [{"folder": str(home / OTHER_FAMILY.name), "texts": TEXTS}],
            "served": {"model": str(home / "static"), "cache": str(MODEL_CACHE), "texts": TEXTS},
        }
    )


def test_another_family_is_converted(
    home: Path, answers: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        embedder = load_embedder(str(home / OTHER_FAMILY.name), tmp_path)
    assert [record.message.split()[0] for record in caplog.records] == ["Converting"]
    assert isinstance(embedder, OpenVinoEmbedder)
    (expected,) = answers["reference"]
    passages = embedder.embed_passages(TEXTS)
    assert (passages * np.array(expected["passages"])).sum(axis=1).min() >= 0.999
    queries = embedder.embed_queries(TEXTS, Deadline.after(30))
    assert (queries * np.array(expected["queries"])).sum(axis=1).min() >= 0.999


def test_what_openvino_does_not_run_is_run_all_the_same(
    home: Path, answers: dict[str, Any]
) -> None:
    served = answers["served"]
    assert served["class"] == "SentenceTransformersEmbedder"
    record = describe_model(str(home / "static"), MODEL_CACHE).record
    assert record is not None
    assert (record.runtime, bool(record.reason)) == ("sentence-transformers", True)
    # [CLS] travel [SEP]
    assert (served["counts"][0], served["ends"][1]) == (3, [6, 9, 18])
    vectors = np.array(served["passages"])
    assert (vectors.shape, served["none"]) == ((3, 16), [0, 16])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors, served["queries"], atol=1e-6)


def test_a_conversion_that_does_not_come_to_an_end_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(NotConfiguredError, match=r"could not be loaded.*exit status 1.*memory"):
        load_embedder(str(home / "static"), tmp_path)
    assert describe_model(str(home / "static"), tmp_path).record is None
