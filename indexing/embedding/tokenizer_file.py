"""Reads a model's tokenizer.json as the transformers library does, with its settings applied."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tokenizers import Tokenizer, normalizers

from indexing.embedding.model_config import ModelConfig, UnsupportedModelError

TOKENIZER_FILE = "tokenizer.json"
_BERT_MODEL_TYPES = ("bert", "mpnet", "distilbert")
_BERT_CLASSES = ("BertTokenizer", "MPNetTokenizer", "DistilBertTokenizer")
_USUAL_PADDING = ("[PAD]", "<pad>")


def check_tokenizer(config: ModelConfig) -> None:
    """Check that there is a tokenizer.json.

    Raises:
        UnsupportedModelError: there is only a vocabulary in another format.
    """
    if not (config.transformer / TOKENIZER_FILE).is_file():
        raise UnsupportedModelError(f"it has no {TOKENIZER_FILE}")


def read_tokenizer(config: ModelConfig) -> Tokenizer:
    """Read a model's tokenizer.

    Tokenizers of BERT take their normalization from tokenizer_config.json, whatever tokenizer.json
    says, and `do_lower_case` of sentence-transformers adds to that of any tokenizer.
    """
    tokenizer = Tokenizer.from_file(str(config.transformer / TOKENIZER_FILE))
    if _is_bert_tokenizer(config):
        tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=config.tokenizer.get("tokenize_chinese_chars", True),
            strip_accents=config.tokenizer.get("strip_accents"),
            lowercase=config.tokenizer.get("do_lower_case", True),
        )
    if config.lower_case and not _lowers_case(tokenizer.normalizer):
        rest = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *rest])
    return tokenizer


def _is_bert_tokenizer(config: ModelConfig) -> bool:
    named = str(config.tokenizer.get("tokenizer_class") or "").removesuffix("Fast")
    if named:
        return named in _BERT_CLASSES
    return config.architecture.get("model_type") in _BERT_MODEL_TYPES


def _lowers_case(normalizer: normalizers.Normalizer | None) -> bool:
    return normalizer is not None and normalizer.normalize_str("A") == "a"


def find_padding_id(tokenizer: Tokenizer, config: ModelConfig) -> int:
    """Find the id of the padding token, whose vectors are never looked at."""
    ids = (tokenizer.token_to_id(token) for token in _padding_tokens(config))
    known = (number for number in ids if number is not None)
    return next(known, config.architecture.get("pad_token_id") or 0)


def _padding_tokens(config: ModelConfig) -> Iterator[str]:
    special = config.transformer / "special_tokens_map.json"
    saved = json.loads(special.read_text(encoding="utf-8")) if special.is_file() else {}
    for settings in (config.tokenizer, saved):
        if token := _token_text(settings):
            yield token
    yield from _USUAL_PADDING


def _token_text(settings: Mapping[str, Any]) -> str:
    token = settings.get("pad_token") or ""
    return str(token.get("content", "") if isinstance(token, dict) else token)
