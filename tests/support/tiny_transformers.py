"""Tiny random models of the BERT family, written by sentence-transformers in a process of its own."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHARACTERS = (
    "abcdefghijklmnopqrstuvwxyzäöüßéABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?!-年休日は語ноетвми"
)
POSITIONS = 640
TOKEN_LIMIT = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """How one model is made; its name names its folder."""

    name: str
    architecture: str
    pooling: str | list[str] = "mean"
    dense: str = ""
    normalize: bool = False
    settings: dict[str, Any] | None = None
    """Of its configuration, beside the sizes."""
    dtype: str = "float32"
    shard: str = "1GB"
    """The largest size of a file."""
    tokenizer: dict[str, Any] | None = None
    lower_case: bool = False
    prompts: dict[str, str] | None = None


SIZES = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": POSITIONS,
    "initializer_range": 0.3,
}


def write_tiny_model(model: TinyModel, home: Path) -> None:
    """Write a model; needs torch."""
    import torch  # noqa: PLC0415
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    from sentence_transformers.base.modules import (  # noqa: PLC0415
        Dense,
        Normalize,
        Transformer,
    )
    from sentence_transformers.sentence_transformer.modules import Pooling  # noqa: PLC0415
    from transformers import AutoConfig, AutoModel  # noqa: PLC0415

    torch.manual_seed(len(model.name))
    folder = home / model.name
    plain = home / f"{model.name}-transformer"
    config = AutoConfig.for_model(model.architecture, **SIZES, **(model.settings or {}))
    transformer: Any = AutoModel.from_config(config)
    with torch.no_grad():
        for name, weight in transformer.named_parameters():
            if name.endswith("bias") or "LayerNorm" in name or "layer_norm" in name:
                weight.add_(torch.randn_like(weight) * 0.1)
    transformer = transformer.to(getattr(torch, model.dtype))
    transformer.save_pretrained(plain, max_shard_size=model.shard)
    _tokenizer(model).save_pretrained(plain)
    first = Transformer(str(plain), max_seq_length=TOKEN_LIMIT)
    modules: list[Any] = [first, Pooling(SIZES["hidden_size"], pooling_mode=model.pooling)]
    width = modules[-1].get_embedding_dimension()
    if model.dense:
        activation = getattr(torch.nn, model.dense)()
        modules += [Normalize(), Dense(width, 24, activation_function=activation)]
    if model.normalize:
        modules.append(Normalize())
    whole = SentenceTransformer(modules=modules, device="cpu", prompts=model.prompts)
    whole.save(str(folder))
    _restore_weight_files(plain, folder)
    if model.lower_case:
        (folder / "sentence_bert_config.json").write_text(
            json.dumps({"max_seq_length": TOKEN_LIMIT, "do_lower_case": True})
        )


def _restore_weight_files(plain: Path, folder: Path) -> None:
    """Take the weights as they were first saved: sentence-transformers writes one file of 32 bits."""
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    for file in plain.glob("*.safetensors*"):
        file.replace(folder / file.name)
    shutil.rmtree(plain)


def _tokenizer(model: TinyModel) -> Any:
    from transformers import (  # noqa: PLC0415
        BertTokenizer,
        MPNetTokenizer,
        RobertaTokenizer,
        XLMRobertaTokenizer,
    )

    settings = model.tokenizer or {}
    match model.architecture:
        case "bert" | "distilbert":
            special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
            return BertTokenizer(vocab=_word_pieces(special), **settings)
        case "mpnet":
            special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
            return MPNetTokenizer(vocab=_word_pieces(special), **settings)
        case "roberta":
            return RobertaTokenizer(vocab=_bytes(), merges=[], **settings)
        case _:
            return XLMRobertaTokenizer(vocab=_unigrams(), **settings)


def _unigrams() -> list[tuple[str, float]]:
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(character, -3.0) for character in CHARACTERS]
    return [*pieces, ("<mask>", 0.0)]


def _word_pieces(special: list[str]) -> dict[str, int]:
    pieces = [*special, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
    return {piece: number for number, piece in enumerate(pieces)}


def _bytes() -> dict[str, int]:
    from tokenizers.pre_tokenizers import ByteLevel  # noqa: PLC0415

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    return {piece: number for number, piece in enumerate([*special, *sorted(ByteLevel.alphabet())])}
