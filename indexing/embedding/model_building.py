"""Builds an OpenVINO model out of a model's own files, without torch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from indexing.embedding.bert_config import read_bert_config
from indexing.embedding.bert_graph import (
    BertWeights,
    build_bert,
    check_weights,
    position_limit,
)
from indexing.embedding.exported_graph import exported_files, read_exported
from indexing.embedding.graph_nodes import Node, TokenInputs, save_graph, token_inputs
from indexing.embedding.model_config import (
    ModelConfig,
    Padding,
    UnsupportedModelError,
    choose_prompts,
    read_model_config,
)
from indexing.embedding.openvino_embedder import (
    ModelRecord,
    OpenVinoEmbedder,
    detect_native_precision,
    write_record,
)
from indexing.embedding.pooling_graph import append_modules, check_modules
from indexing.embedding.precision_check import CHECKED_TEXTS, MIN_COSINE, measure_min_cosine
from indexing.embedding.safetensors_file import ModelWeights
from indexing.embedding.tokenizer_file import (
    TOKENIZER_FILE,
    check_tokenizer,
    find_padding_id,
    read_tokenizer,
)


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A model that can be built here."""

    config: ModelConfig
    max_tokens: int
    padding: Padding
    build_tokens: Callable[[TokenInputs], Node]
    """Builds the vectors of all tokens."""


def plan_graph(folder: Path) -> GraphPlan:
    """Find out from configuration and file headers how to build a model.

    Raises:
        UnsupportedModelError: only sentence-transformers can run it.
        DamagedWeightsError: its weights cannot be read.
    """
    config = read_model_config(folder)
    check_tokenizer(config)
    check_modules(config.modules)
    try:
        return _plan_bert(config)
    except UnsupportedModelError:
        files = exported_files(folder)
        if not files:
            raise
        return GraphPlan(
            config, config.max_tokens, config.padding, partial(read_exported, files[0])
        )


def _plan_bert(config: ModelConfig) -> GraphPlan:
    bert = read_bert_config(config.architecture)
    stored = ModelWeights.from_folder(config.transformer)
    if stored is None:
        raise UnsupportedModelError("it has no weights in the safetensors format")
    weights = BertWeights(stored)
    check_weights(bert, weights)
    limit = min(config.max_tokens, position_limit(bert, weights))
    # Positions of BERT are counted from the start of the padding, so it has to come after the text.
    return GraphPlan(config, limit, "right", partial(build_bert, bert, weights))


def build_model(plan: GraphPlan, name: str, version: str, folder: Path) -> ModelRecord:
    """Build a model into a folder.

    Raises:
        UnsupportedModelError: an OpenVINO or ONNX file turns out not to be an encoder's.
    """
    inputs = token_inputs()
    vectors = append_modules(plan.build_tokens(inputs), inputs.mask, plan.config.modules)
    save_graph(inputs, vectors, folder)
    tokenizer = read_tokenizer(plan.config)
    tokenizer.save(str(folder / TOKENIZER_FILE))
    prompts = choose_prompts(plan.config.prompts, name)
    record = ModelRecord(
        model=name,
        version=version,
        runtime="openvino",
        reason="",
        precision="f32",
        dimension=int(vectors.get_output_partial_shape(0)[-1].get_length()),
        max_tokens=plan.max_tokens,
        pad_id=find_padding_id(tokenizer, plan.config),
        padding=plan.padding,
        query_prompt=prompts.query,
        passage_prompt=prompts.passage,
    )
    record = _choose_precision(record, folder)
    write_record(folder, record)
    return record


def _choose_precision(record: ModelRecord, folder: Path) -> ModelRecord:
    """Use the processor's own precision where its vectors are close to those of 32 bits."""
    native = replace(record, precision=detect_native_precision())
    if native == record:
        return record
    exact = OpenVinoEmbedder(folder, record).embed_passages(CHECKED_TEXTS)
    return native if measure_min_cosine(folder, native, exact) >= MIN_COSINE else record
