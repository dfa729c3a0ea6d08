"""Chooses how an embedding model is run, prepares it once, and loads it from the cache.

OpenVINO runs every model it can: the BERT family from its weights, others from the OpenVINO or ONNX
file they carry, and the rest after a conversion, which needs sentence-transformers and torch.
"""

import hashlib
import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from connectors.errors import DamagedDataError, NotConfiguredError
from indexing.embedding.embedder import Embedder
from indexing.embedding.exported_graph import can_read_exported
from indexing.embedding.model_building import GraphPlan, build_model, plan_graph
from indexing.embedding.model_config import UnsupportedModelError
from indexing.embedding.model_files import (
    DEFAULT_HUB,
    Hub,
    ModelSource,
    find_model,
    get_weights_version,
)
from indexing.embedding.openvino_embedder import ModelRecord, OpenVinoEmbedder, read_record
from indexing.embedding.openvino_runtime import delete_compiled, detect_native_precision
from indexing.embedding.safetensors_file import DamagedWeightsError
from indexing.embedding.sentence_transformers_model import (
    CONVERSION_LIBRARIES,
    SentenceTransformersEmbedder,
    convert_in_child_process,
    is_conversion_installed,
)

_CACHE_FORMAT = "2"
"""A new number prepares every model again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """A model that is converted by sentence-transformers, or run by it."""

    reason: str


Plan: TypeAlias = GraphPlan | ConversionPlan


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
    source = find_model(model, hub, can_read_exported)
    folder = _cache_folder(source, cache)
    record = read_record(folder)
    if record is None:
        plan = _make_plan(source)
        folder = _cache_folder(source, cache, _libraries(plan))
        record = read_record(folder) or _prepare_once(source, plan, folder)
    if record.runtime == "openvino":
        return OpenVinoEmbedder(folder, record, threads)
    if not is_conversion_installed():
        raise NotConfiguredError(_missing_libraries(source, record.reason))
    return SentenceTransformersEmbedder(source.folder, folder, record)


def describe_model(model: str, cache: Path, hub: Hub = DEFAULT_HUB) -> ModelState:
    """Tell where a model comes from and how it is run, without preparing or loading it.

    Raises:
        NotConfiguredError: the model is not found.
        DamagedDataError: its weights cannot be read.
    """
    source = find_model(model, hub, can_read_exported)
    plan = _make_plan(source)
    record = read_record(_cache_folder(source, cache, _libraries(plan)))
    return ModelState(source=source, record=record, advice="" if record else _advice(source, plan))


def _advice(source: ModelSource, plan: Plan) -> str:
    if isinstance(plan, GraphPlan):
        return "The first sync or search prepares it, which takes seconds."
    if is_conversion_installed():
        return "The first sync or search converts it, which takes half a minute."
    return _missing_libraries(source, plan.reason)


def _make_plan(source: ModelSource) -> Plan:
    try:
        return plan_graph(source.folder)
    except UnsupportedModelError as error:
        return ConversionPlan(str(error))
    except DamagedWeightsError as error:
        raise DamagedDataError(
            f"The embedding model {source.name} cannot be loaded: {error}. Fetch its files again."
        ) from error


def _libraries(plan: Plan) -> Sequence[str]:
    """List what a prepared model depends on besides OpenVINO."""
    return CONVERSION_LIBRARIES if isinstance(plan, ConversionPlan) else ()


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


def _prepare_once(source: ModelSource, plan: Plan, folder: Path) -> ModelRecord:
    """Prepare in a folder beside, then rename; a second process waits for the first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if (record := read_record(folder)) is not None:
            return record
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        version = get_weights_version(source.folder, folder.parent)
        record = _prepare(source, plan, unfinished, version)
        delete_compiled(unfinished)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    if record.runtime != "openvino":
        _log.warning(
            "%s is run by sentence-transformers, several times slower, because OpenVINO does not"
            " run it: %s",
            source.name,
            record.reason,
        )
    return record


def _prepare(source: ModelSource, plan: Plan, folder: Path, version: str) -> ModelRecord:
    if isinstance(plan, ConversionPlan):
        return _convert(source, plan.reason, folder, version)
    _log.info("Preparing %s for OpenVINO; this is done once.", source.name)
    try:
        return build_model(plan, source.name, version, folder)
    except UnsupportedModelError as error:
        return _convert(source, str(error), folder, version)


def _convert(source: ModelSource, reason: str, folder: Path, version: str) -> ModelRecord:
    if not is_conversion_installed():
        raise NotConfiguredError(_missing_libraries(source, reason))
    _log.info("Converting %s to OpenVINO; this is done once.", source.name)
    return convert_in_child_process(source, folder, version)


def _missing_libraries(source: ModelSource, reason: str) -> str:
    return (
        f"The embedding model {source.name} must be converted ({reason}), and the libraries for that"
        " are not installed. Run: pip install 'quarry-search[models]' (it installs torch as well, up"
        " to 5 GB). Or choose a model of the BERT family (BERT, RoBERTa, XLM-RoBERTa, MPNet), or one"
        " with OpenVINO or ONNX files."
    )
