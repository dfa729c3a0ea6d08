"""What the JSON files of a sentence-transformers model say: limits, prompts and modules."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

MAX_TOKENS = 8192
"""For models that state no limit, or a larger one."""

PoolingMode: TypeAlias = Literal[
    "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"
]
Padding: TypeAlias = Literal["left", "right"]
_POOLING_SWITCHES: dict[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""In the order in which their vectors are concatenated."""
BERT_MODEL_TYPES = ("bert", "roberta", "camembert", "xlm-roberta", "mpnet", "distilbert")
_TRANSFORMER_FILES = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_xlm-roberta_config.json",
)
_TRANSFORMER_DEFAULTS = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
_SENTENCE = "sentence_embedding"


@dataclass(frozen=True, slots=True)
class ModelSource:
    name: str
    """What makes two indexes speak of the same model, wherever its files lie."""
    folder: Path
    found_in: str
    """In words: a folder, an installed package, the cache, the hub."""


class UnsupportedModelError(ValueError):
    """Raised for a model that only sentence-transformers can run; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """Makes one vector of the vectors of all tokens; of several modes, one after the other."""

    modes: tuple[PoolingMode, ...]


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer after the pooling; its weights lie in a folder of their own."""

    folder: Path
    activation: str


@dataclass(frozen=True, slots=True)
class Normalize:
    """Scales vectors to length 1."""


Module: TypeAlias = Pooling | Dense | Normalize


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What a model wants before a query and before a passage."""

    query: str
    passage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A model as its files describe it, as far as its vectors depend on it."""

    transformer: Path
    """The folder of the transformer and its tokenizer."""
    architecture: Mapping[str, Any]
    """Its config.json."""
    modules: tuple[Module, ...]
    prompts: Mapping[str, str | None]
    token_limit: int | None
    """As configured for sentence-transformers; None where the tokenizer and the transformer decide."""
    lower_case: bool
    tokenizer: Mapping[str, Any]
    """Its tokenizer_config.json."""

    @property
    def max_tokens(self) -> int:
        limits = [MAX_TOKENS, self.token_limit or self.tokenizer.get("model_max_length")]
        if self.token_limit is None:
            limits.append(self.architecture.get("max_position_embeddings"))
        return int(min(limit for limit in limits if limit and limit > 0))

    @property
    def padding(self) -> Padding:
        return "left" if self.tokenizer.get("padding_side") == "left" else "right"


def read_model_config(folder: Path) -> ModelConfig:
    """Read the JSON files of a model.

    Raises:
        UnsupportedModelError: a module or a setting is not known here.
    """
    transformer, modules = _read_modules(folder)
    settings = _read_transformer_settings(transformer)
    saved = _read_json(folder / "config_sentence_transformers.json")
    if saved.get("model_type", "SentenceTransformer") != "SentenceTransformer":
        raise UnsupportedModelError(f"it is a {saved['model_type']}")
    return ModelConfig(
        transformer=transformer,
        architecture=_read_json(transformer / "config.json"),
        modules=modules,
        prompts=saved.get("prompts") or {},
        token_limit=settings.get("max_seq_length"),
        lower_case=bool(settings.get("do_lower_case")),
        tokenizer=_read_json(transformer / "tokenizer_config.json"),
    )


def is_bert_family(architecture: Mapping[str, Any]) -> bool:
    """Return whether a config.json is of an architecture that `bert_graph` builds.

    A model with code of its own (`auto_map`) goes by the name of the architecture it changes.
    """
    return architecture.get("model_type") in BERT_MODEL_TYPES and "auto_map" not in architecture


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnsupportedModelError(f"{file} is not valid JSON") from error
    return value if isinstance(value, dict) else {"modules": value}


def _read_modules(folder: Path) -> tuple[Path, tuple[Module, ...]]:
    """Return the transformer's folder and the modules after it.

    Without modules.json sentence-transformers takes the mean of all tokens.
    """
    listed = _read_json(folder / "modules.json").get("modules")
    if listed is None:
        return folder, (Pooling(("mean",)),)
    kinds = [str(each["type"]).rpartition(".")[2] for each in listed]
    foreign = [each["type"] for each in listed if not each["type"].startswith(_LIBRARY)]
    if kinds[:2] != ["Transformer", "Pooling"] or foreign:
        raise UnsupportedModelError(f"its modules are {', '.join(foreign or kinds)}")
    folders = [folder / each["path"] for each in listed]
    read = [_read_module(*each) for each in zip(kinds[1:], folders[1:], strict=True)]
    return folders[0], tuple(read)


_LIBRARY = "sentence_transformers."


def _read_module(kind: str, folder: Path) -> Module:
    config = _read_json(folder / "config.json")
    match kind:
        case "Pooling":
            return _read_pooling(config)
        case "Dense":
            return _read_dense(folder, config)
        case "Normalize" if config.get("module_input_name", _SENTENCE) == _SENTENCE:
            return Normalize()
    raise UnsupportedModelError(f"it has a module {kind}")


def _read_pooling(config: Mapping[str, Any]) -> Pooling:
    if config.get("include_prompt") is False:
        raise UnsupportedModelError("its pooling leaves out the prompt")
    modes = config.get("pooling_mode")
    if isinstance(modes, str):
        modes = [modes]
    modes = modes or [mode for key, mode in _POOLING_SWITCHES.items() if config.get(key)]
    if unknown := set(modes) - set(_POOLING_SWITCHES.values()):
        raise UnsupportedModelError(f"its pooling is {', '.join(sorted(unknown))}")
    return Pooling(tuple(modes) or ("mean",))


def _read_dense(folder: Path, config: Mapping[str, Any]) -> Dense:
    outputs = {config.get(key) or _SENTENCE for key in ("module_input_name", "module_output_name")}
    if outputs != {_SENTENCE} or config.get("use_residual"):
        raise UnsupportedModelError("it has a dense layer beside its vectors")
    return Dense(folder, str(config.get("activation_function", "Tanh")).rpartition(".")[2])


def _read_transformer_settings(folder: Path) -> dict[str, Any]:
    files = (folder / name for name in _TRANSFORMER_FILES)
    settings = next((read for file in files if (read := _read_json(file))), {})
    for key, value in settings.items():
        known = key in ("max_seq_length", "do_lower_case")
        if not known and value and value != _TRANSFORMER_DEFAULTS.get(key):
            raise UnsupportedModelError(f"its transformer is loaded with {key}={value!r}")
    return settings


# What the cards of these families say, for copies whose files do not carry their prompts:
# intfloat/e5-*, intfloat/multilingual-e5-* (not the "instruct" ones), BAAI/bge-*-en, BAAI/bge-*-zh.
_KNOWN_PROMPTS = (
    (
        re.compile(r".*\be5-(?:small|base|large)(?:-v2)?"),
        Prompts(query="query: ", passage="passage: "),
    ),
    (
        re.compile(r".*\bbge-(?:small|base|large)-en.*"),
        Prompts(query="Represent this sentence for searching relevant passages: ", passage=""),
    ),
    (
        re.compile(r".*\bbge-(?:small|base|large)-zh.*"),
        Prompts(query="为这个句子生成表示以用于检索相关文章：", passage=""),
    ),
)


def choose_prompts(saved: Mapping[str, str | None], model: str) -> Prompts:
    """Choose the prompts as sentence-transformers does, else those of the model's family.

    A name that is saved without a text means no prompt; `query` and `document` always exist.
    """
    prompts = {"query": "", "document": ""} | {key: text or "" for key, text in saved.items()}
    found = Prompts(query=prompts["query"], passage=prompts["document"])
    if found.query or found.passage:
        return found
    known = (each for family, each in _KNOWN_PROMPTS if family.fullmatch(model.lower()))
    return next(known, found)
