"""A model is prepared once, in the way that needs the least, and says what it lacks."""

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from connectors.errors import DamagedDataError, NotConfiguredError
from indexing.embedding import model_building, model_preparation, precision_check
from indexing.embedding.model_loading import describe_model, load_embedder
from indexing.embedding.openvino_embedder import OpenVinoEmbedder, read_record
from indexing.runtime.deadline import Deadline
from tests.support.models import MINILM, MODEL_CACHE, minilm, write_static_model, write_tiny_bert

PROMPTS = {"query": "travel ", "document": "is approved "}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_tiny_bert(tmp_path / "tiny", limit=12, prompts=PROMPTS)
    return tmp_path / "tiny"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", refuse)
    # That a faster precision is tried in a process of its own is no conversion.
    monkeypatch.setattr(model_building, "detect_native_precision", lambda: "f32")


@pytest.fixture
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sentence_transformers", "transformers", "torch"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("_no_child", "_no_torch")
def test_two_at_once_prepare_a_model_once(
    tiny: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), ThreadPoolExecutor(2) as pool:
        ours, same = pool.map(lambda _: load_embedder(str(tiny), cache), range(2))
    assert [record.message.split()[0] for record in caplog.records] == ["Preparing"]
    assert ours.identity == same.identity
    assert not list(cache.glob("*.unfinished"))


def test_limit_and_prompts_are_the_models_own(tiny: Path, cache: Path) -> None:
    embedder = load_embedder(str(tiny), cache)
    assert embedder.max_tokens == 12
    # [CLS] is approved travel [SEP]: with the prompt, since it takes room.
    assert embedder.count_tokens(["travel"]) == [5]
    assert list(embedder.token_ends("travel  by")) == [6, 10]
    passage = embedder.embed_passages(["by"])
    query = embedder.embed_queries(["by"], Deadline.after(60))
    (tiny / "config_sentence_transformers.json").unlink()
    plain = load_embedder(str(tiny), cache)
    np.testing.assert_allclose(passage, plain.embed_passages(["is approved by"]), atol=1e-5)
    np.testing.assert_allclose(query, plain.embed_passages(["travel by"]), atol=1e-5)


@pytest.mark.usefixtures("_no_torch")
def test_what_needs_conversion_says_what_to_install(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "static"
    write_static_model(folder)
    what_to_do = r"static must be converted \(.*StaticEmbedding.*quarry-search\[models\].*5 GB"
    with pytest.raises(NotConfiguredError, match=what_to_do):
        load_embedder(str(folder), cache)
    state = describe_model(str(folder), cache)
    assert state.record is None
    assert "pip install 'quarry-search[models]'" in state.advice
    assert not list(cache.glob("*/record.json"))


@pytest.mark.usefixtures("_no_torch")
def test_a_ready_made_network_that_cannot_be_read_needs_conversion(tiny: Path, cache: Path) -> None:
    settings = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps({**settings, "model_type": "another"}))
    (tiny / "onnx").mkdir()
    (tiny / "onnx" / "model.onnx").write_bytes(b"not a network")
    with pytest.raises(NotConfiguredError, match=r"cannot read model.*quarry-search\[models\]"):
        load_embedder(str(tiny), cache)


def test_damaged_weights_are_reported(tiny: Path, cache: Path) -> None:
    weights = tiny / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(DamagedDataError, match=r"model\.safetensors is truncated.*Fetch"):
        load_embedder(str(tiny), cache)


def test_where_the_faster_precision_is_not_exact_the_other_is_used(
    tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = load_embedder(str(tiny), cache).identity.precision
    monkeypatch.setattr("indexing.embedding.model_building.MIN_COSINE", 0.9999999)
    exact = load_embedder(str(tiny), cache.with_name("other")).identity.precision
    assert (native, exact) in (("bf16", "f32"), ("f32", "f32"))


def test_a_precision_that_ends_the_process_is_not_used(
    tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_building, "detect_native_precision", lambda: "bf16")
    monkeypatch.setattr(precision_check, "_PROGRAM", "import os; os.abort()")
    assert load_embedder(str(tiny), cache).identity.precision == "f32"


def test_vectors_of_another_process_are_those_of_this_one(tiny: Path, cache: Path) -> None:
    load_embedder(str(tiny), cache)
    (folder,) = (path.parent for path in cache.glob("*/record.json"))
    record = read_record(folder)
    assert record is not None
    exact = replace(record, precision="f32")
    expected = OpenVinoEmbedder(folder, exact).embed_passages(precision_check.CHECKED_TEXTS)
    apart = precision_check._embed_isolated(folder, exact)
    assert apart is not None
    np.testing.assert_allclose(apart, expected, atol=1e-4)


def test_describing_a_model_does_not_prepare_it(tiny: Path, cache: Path) -> None:
    state = describe_model(str(tiny), cache)
    assert state.record is None
    assert "prepares it" in state.advice
    assert state.source.found_in == f"the folder {tiny}"
    assert isinstance(minilm(), OpenVinoEmbedder)
    known = describe_model(MINILM, MODEL_CACHE)
    assert known.record is not None
    assert (known.record.runtime, known.record.reason, known.advice) == ("openvino", "", "")


def test_the_libraries_of_conversion_count_only_where_they_are_used(
    tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_embedder(str(tiny), cache)
    monkeypatch.setattr(model_preparation, "CONVERSION_LIBRARIES", ("no-such-library",))
    assert describe_model(str(tiny), cache).record is not None


def test_vectors_have_the_identity_of_indexes_made_before() -> None:
    """The version is of the files alone, however they are run."""
    identity = minilm().identity
    assert (identity.model, identity.version, identity.dimension) == (
        MINILM,
        "64d86c16eae0d846",
        384,
    )
