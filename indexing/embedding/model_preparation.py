"""Prepares an embedding model for OpenVINO, once; a search loads what was prepared (`model_loading`).

OpenVINO runs every model it can: the BERT family from its weights, others from the OpenVINO or ONNX
file they carry, and the rest after a conversion, which needs sentence-transformers and torch.
"""

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from connectors.errors import DamagedDataError, NotConfiguredError
from indexing.embedding.model_building import GraphPlan, build_model, plan_graph
from indexing.embedding.model_config import ModelSource, UnsupportedModelError
from indexing.embedding.openvino_embedder import (
    ModelRecord,
    delete_compiled,
    read_record,
)
from indexing.embedding.safetensors_file import DamagedWeightsError
from indexing.embedding.sentence_transformers_model import (
    CONVERSION_LIBRARIES,
    convert_in_child_process,
    is_conversion_installed,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """A model that is converted by sentence-transformers, or run by it."""

    reason: str


Plan: TypeAlias = GraphPlan | ConversionPlan


def describe_preparation(source: ModelSource, plan: Plan) -> str:
    """Say what has to happen before the model can be used."""
    if isinstance(plan, GraphPlan):
        return "The first sync or search prepares it, which takes seconds."
    if is_conversion_installed():
        return "The first sync or search converts it, which takes half a minute."
    return missing_libraries(source, plan.reason)


def make_plan(source: ModelSource) -> Plan:
    """Choose how a model is prepared. Raises DamagedDataError: its weights cannot be read."""
    try:
        return plan_graph(source.folder)
    except UnsupportedModelError as error:
        return ConversionPlan(str(error))
    except DamagedWeightsError as error:
        raise DamagedDataError(
            f"The embedding model {source.name} cannot be loaded: {error}. Fetch its files again."
        ) from error


def list_libraries(plan: Plan) -> Sequence[str]:
    """List what a prepared model depends on besides OpenVINO."""
    return CONVERSION_LIBRARIES if isinstance(plan, ConversionPlan) else ()


def prepare_once(source: ModelSource, plan: Plan, folder: Path, version: str) -> ModelRecord:
    """Prepare in a folder beside, then rename; a second process waits for the first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if (record := read_record(folder)) is not None:
            return record
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
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
        raise NotConfiguredError(missing_libraries(source, reason))
    _log.info("Converting %s to OpenVINO; this is done once.", source.name)
    return convert_in_child_process(source, folder, version)


def missing_libraries(source: ModelSource, reason: str) -> str:
    return (
        f"The embedding model {source.name} must be converted ({reason}), and the libraries for that"
        " are not installed. Run: pip install 'quarry-search[models]' (it installs torch as well, up"
        " to 5 GB). Or choose a model of the BERT family (BERT, RoBERTa, XLM-RoBERTa, MPNet), or one"
        " with OpenVINO or ONNX files."
    )
