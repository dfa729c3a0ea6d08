"""Converts any sentence-transformers model to OpenVINO, or runs it as it is where that fails.

The one module that imports sentence-transformers and torch, which come with the extra `models`, take
seconds and most of a gigabyte, and leave a process that must not fork. So the conversion runs in a
process of its own, and they are imported here only to run a model that OpenVINO does not run.
"""

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from connectors.errors import NotConfiguredError
from indexing.embedding.embedder import EmbedderIdentity, Vectors
from indexing.embedding.graph_nodes import save_converted
from indexing.embedding.model_config import MAX_TOKENS, ModelSource, choose_prompts
from indexing.embedding.openvino_embedder import (
    ModelRecord,
    normalize_vectors,
    read_record,
    write_record,
)
from indexing.embedding.precision_check import CHECKED_TEXTS, choose_precision
from indexing.embedding.token_counting import (
    EstimatedTokenCounter,
    ModelTokenizer,
    TokenCounter,
    replace_surrogates,
)
from indexing.embedding.tokenizer_file import TOKENIZER_FILE
from indexing.runtime.deadline import Deadline

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

CONVERSION_LIBRARIES = ("sentence-transformers", "transformers", "torch")
_MODULES = ("sentence_transformers", "transformers", "torch")


def is_conversion_installed() -> bool:
    """Return whether the libraries of the extra `models` are installed, without importing them."""
    return all(find_spec(name) is not None for name in _MODULES)


_CHILD = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    " from indexing.embedding.sentence_transformers_model import convert_main; convert_main(sys.argv[1:])"
)


def convert_in_child_process(source: ModelSource, folder: Path, version: str) -> ModelRecord:
    """Convert a model into a folder, and record there how far it came.

    Raises:
        NotConfiguredError: the model cannot be loaded.
    """
    home = Path(__file__).parents[2]
    arguments = [str(home), source.name, str(source.folder), str(folder), version]
    child = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", _CHILD, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
    record = read_record(folder)
    if record is None or child.returncode in _STOPPED:
        raise NotConfiguredError(
            f"The embedding model {source.name} in {source.folder} could not be loaded:"
            f" {lines[-1]} (exit status {child.returncode}). Check that its files are whole and that"
            " there is memory for it (about 1 GB and the weights), or choose another model."
        )
    if record.runtime != "openvino":
        record = replace(record, reason=lines[-1])
        write_record(folder, record)
    return record


_STOPPED = (-2, -9, -15)
"""Interrupted, killed (most often for memory) or terminated: this says nothing about the model."""


def convert_main(arguments: Sequence[str]) -> None:
    """Convert a model, in a process of its own; the arguments are name, source, target, version.

    The record is first written as if OpenVINO could not run the model, so that a conversion that
    fails, in whatever way, leaves a model that is served by sentence-transformers.
    """
    name, source, target, version = arguments
    folder = Path(target)
    model = _load(Path(source))
    if (tokenizer := _fast_tokenizer(model)) is not None:
        tokenizer.save(str(folder / TOKENIZER_FILE))
    record = _make_record(model, name, version)
    write_record(folder, record)
    if tokenizer is None:
        raise ValueError("it has no tokenizer that the tokenizers library can run")
    _convert(model, folder)
    expected = _encode(model, record.passage_prompt, CHECKED_TEXTS)
    converted = replace(record, runtime="openvino", reason="")
    write_record(folder, choose_precision(folder, converted, expected))


def _load(folder: Path) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.eval()
    return model


def _fast_tokenizer(model: "SentenceTransformer") -> Tokenizer | None:
    """Return the tokenizer as the model was loaded with it, lower-casing and the like included."""
    tokenizer: Any = model.tokenizer
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return backend if isinstance(backend, Tokenizer) else None


def _make_record(model: "SentenceTransformer", name: str, version: str) -> ModelRecord:
    prompts = choose_prompts(model.prompts, name)
    tokenizer: Any = model.tokenizer
    limit = model.max_seq_length or MAX_TOKENS
    return ModelRecord(
        model=name,
        version=version,
        runtime="sentence-transformers",
        reason="the conversion was not finished",
        precision="f32",
        dimension=model.get_embedding_dimension() or model.encode(["a"]).shape[1],
        max_tokens=int(min(limit, MAX_TOKENS)),
        pad_id=getattr(tokenizer, "pad_token_id", 0) or 0,
        padding="left" if getattr(tokenizer, "padding_side", "right") == "left" else "right",
        query_prompt=prompts.query,
        passage_prompt=prompts.passage,
    )


def _convert(model: "SentenceTransformer", folder: Path) -> None:
    """Convert the whole model, pooling and normalization with it."""
    import torch

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            features = {"input_ids": input_ids, "attention_mask": attention_mask}
            pooled: torch.Tensor = self.model(features)["sentence_embedding"]
            return torch.nn.functional.normalize(pooled, dim=-1)

    if any(getattr(module, "include_prompt", True) is False for module in model):
        raise ValueError("its pooling leaves out the prompt")
    ids = torch.ones((2, 9), dtype=torch.int64)
    with torch.no_grad():
        save_converted(Whole().eval(), {"input_ids": ids, "attention_mask": ids}, folder)


def _encode(model: "SentenceTransformer", prompt: str, texts: Sequence[str]) -> Vectors:
    vectors = model.encode(
        [replace_surrogates(text) for text in texts],
        prompt=prompt,
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    return normalize_vectors(np.asarray(vectors, dtype=np.float32))


class SentenceTransformersEmbedder:
    """An Embedder by sentence-transformers itself, for models that OpenVINO does not run.

    Thread-safe, one call at a time.
    """

    def __init__(self, source: Path, folder: Path, record: ModelRecord) -> None:
        self._model = _load(source)
        self._record = record
        self._tokens = _open_token_counter(folder)
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        return self._record.identity

    @property
    def max_tokens(self) -> int:
        return self._record.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.count_tokens([self._record.passage_prompt + text for text in texts])

    def token_ends(self, text: str) -> Sequence[int]:
        return self._tokens.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        deadline.check()
        return self._embed(texts, self._record.query_prompt)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._record.passage_prompt)

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        if not texts:
            return np.empty((0, self._record.dimension), dtype=np.float32)
        with self._lock:
            return _encode(self._model, prompt, texts)


def _open_token_counter(folder: Path) -> TokenCounter:
    file = folder / TOKENIZER_FILE
    return ModelTokenizer.from_file(file) if file.is_file() else EstimatedTokenCounter()
