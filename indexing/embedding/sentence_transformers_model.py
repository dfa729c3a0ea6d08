"""Any sentence-transformers model, converted once to OpenVINO; served as it is where it cannot be.

The one module that imports sentence-transformers and torch, which takes seconds and most of a
gigabyte, and leaves a process that must not fork. So the conversion runs in a process of its own,
and here they are imported only to serve a model that OpenVINO does not run.
"""

import hashlib
import logging
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from tokenizers import Tokenizer

from connectors.errors import ActionRequiredError
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vectors
from indexing.embedding.model_files import USUAL_HUB, Hub, ModelSource, find_model, weights_version
from indexing.embedding.model_tokenizer import (
    EstimatedTokens,
    ModelTokenizer,
    Tokenization,
    well_formed,
)
from indexing.embedding.openvino_embedder import (
    TOKENIZER_FILE,
    ModelRecord,
    OpenVinoModel,
    normalised,
    read_record,
    write_record,
)
from indexing.embedding.openvino_runtime import (
    Precision,
    forget_compiled,
    native_precision,
    save_converted,
)
from indexing.runtime.deadline import Deadline

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CONVERTER = "1"
"""A new number converts every model anew."""
_LIBRARIES = ("openvino", "sentence-transformers", "transformers", "torch")
_LONGEST = 8192
"""Tokens; for models that state no limit."""
_ALIKE = 0.999
"""Least cosine between the two ways on the texts below, for a conversion to be trusted."""
_CHECKED_TEXTS = (
    "a",
    "Who approves travel abroad?",
    "The deposit is paid back within thirty days, less the cost of repairs.",
    "Fehlercode E-1042: Das Gerät startet nicht.",
    "有給休暇は年に二十日です。",
    "Выходные дни указаны в договоре.",
    "long text " * 40,
    "one two three four five six seven eight nine ten " * 200,
)

_log = logging.getLogger(__name__)


def load_embedder(
    model: str,
    cache: Path,
    threads: int | None = None,
    hub: Hub = USUAL_HUB,
) -> Embedder:
    """The embedder of a model; the first time it is converted, which takes half a minute.

    Args:
        model: a path, an installed package that carries one, or a name of the hub.
        cache: where converted models are kept; processes may share it.
        threads: for questions, and as many again for passages; all of the processor's by default.

    Raises:
        ActionRequiredError: the model is not to be had, or cannot be read.
    """
    source = find_model(model, hub)
    folder = _folder(source, cache)
    record = read_record(folder) or _converted(source, folder)
    if record.runtime == "openvino":
        return OpenVinoModel(folder, record, threads)
    return TorchSentenceModel(source.folder, folder, record)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """For `doctor`."""

    source: ModelSource
    record: ModelRecord | None
    """None: not converted yet, which the first use does."""


def describe(model: str, cache: Path, hub: Hub = USUAL_HUB) -> ModelState:
    """Where a model comes from and how it is run, without loading or converting it.

    Raises:
        ActionRequiredError: the model is not to be had.
    """
    source = find_model(model, hub)
    return ModelState(source=source, record=read_record(_folder(source, cache)))


def _folder(source: ModelSource, cache: Path) -> Path:
    """Another name, other weights, libraries or another precision: another conversion."""
    version = weights_version(source.folder, cache)
    libraries = [f"{name} {installed_version(name)}" for name in _LIBRARIES]
    key = "\n".join([source.name, version, native_precision(), _CONVERTER, *libraries])
    slug = re.sub(r"[^A-Za-z0-9]+", "-", source.name).strip("-")[-60:]
    return cache / f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _converted(source: ModelSource, folder: Path) -> ModelRecord:
    """Convert into a folder beside, then rename; a second process waits for the first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if (record := read_record(folder)) is not None:
            return record
        _log.info("Converting %s to OpenVINO; this is done once.", source.name)
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        record = _convert_apart(source, unfinished, weights_version(source.folder, folder.parent))
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


_CHILD = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    " from indexing.embedding.sentence_transformers_model import convert_main; convert_main(sys.argv[1:])"
)


def _convert_apart(source: ModelSource, folder: Path, version: str) -> ModelRecord:
    """Convert in a process of its own, and judge by what it left behind how far it came."""
    home = Path(__file__).parents[2]
    arguments = [str(home), source.name, str(source.folder), str(folder), version]
    child = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", _CHILD, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
    record = read_record(folder)
    if record is None or child.returncode in _STOPPED:
        raise ActionRequiredError(
            f"The embedding model {source.name} in {source.folder} could not be loaded:"
            f" {said[-1]} (exit status {child.returncode}). Check that its files are whole and that"
            " there is memory for it (about 1 GB and the weights), or choose another model."
        )
    if record.runtime != "openvino":
        record = replace(record, reason=said[-1])
        write_record(folder, record)
    return record


_STOPPED = (-2, -9, -15)
"""Interrupted, killed (most often for memory) or ended from outside: no verdict on the model."""


def convert_main(arguments: Sequence[str]) -> None:
    """The conversion itself, for a process of its own: name, source folder, target, version.

    The record is first written as if OpenVINO could not run the model, so that a conversion that
    fails, in whatever way, leaves a model that is served by sentence-transformers.
    """
    name, source, target, version = arguments
    folder = Path(target)
    model = _load(Path(source))
    if (tokenizer := _fast_tokenizer(model)) is not None:
        tokenizer.save(str(folder / TOKENIZER_FILE))
    record = _record(model, name, version)
    write_record(folder, record)
    if tokenizer is None:
        raise ValueError("it has no tokenizer that the tokenizers library can run")
    _convert(model, folder)
    write_record(folder, _trusted(model, folder, record))
    forget_compiled(folder)


def _load(folder: Path) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True).eval()


def _fast_tokenizer(model: "SentenceTransformer") -> Tokenizer | None:
    """As the model was loaded with it: lower-casing and the like are part of it."""
    tokenizer: Any = model.tokenizer
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return backend if isinstance(backend, Tokenizer) else None


def _record(model: "SentenceTransformer", name: str, version: str) -> ModelRecord:
    query, passage = _prompts(model, name)
    tokenizer: Any = model.tokenizer
    limit = model.max_seq_length or _LONGEST
    return ModelRecord(
        model=name,
        version=version,
        runtime="sentence-transformers",
        reason="the conversion was not finished",
        precision="f32",
        dimension=model.get_embedding_dimension() or model.encode(["a"]).shape[1],
        max_tokens=int(min(limit, _LONGEST)),
        pad_id=getattr(tokenizer, "pad_token_id", 0) or 0,
        padding="left" if getattr(tokenizer, "padding_side", "right") == "left" else "right",
        query_prompt=query,
        passage_prompt=passage,
    )


# What the cards of these families say, for copies whose files do not carry their prompts:
# intfloat/e5-*, intfloat/multilingual-e5-* (not the "instruct" ones), BAAI/bge-*-en, BAAI/bge-*-zh.
_KNOWN_PROMPTS = (
    (re.compile(r".*\be5-(?:small|base|large)(?:-v2)?"), "query: ", "passage: "),
    (
        re.compile(r".*\bbge-(?:small|base|large)-en.*"),
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
    (
        re.compile(r".*\bbge-(?:small|base|large)-zh.*"),
        "为这个句子生成表示以用于检索相关文章：",
        "",
    ),
)


def _prompts(model: "SentenceTransformer", name: str) -> tuple[str, str]:
    """Before a query and before a passage: those the model carries, else those its family has."""
    prompts = {key: prompt or "" for key, prompt in model.prompts.items()}
    usual = prompts.get(model.default_prompt_name or "", "")
    query = prompts.get("query", usual)
    passage = next(
        (prompts[key] for key in ("document", "passage", "corpus") if key in prompts), usual
    )
    if query or passage:
        return query, passage
    for family, family_query, family_passage in _KNOWN_PROMPTS:
        if family.fullmatch(name.lower()):
            return family_query, family_passage
    return "", ""


def _convert(model: "SentenceTransformer", folder: Path) -> None:
    """Convert the whole model, pooling and normalisation with it."""
    import torch

    class Whole(torch.nn.Module):
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


def _trusted(model: "SentenceTransformer", folder: Path, record: ModelRecord) -> ModelRecord:
    """The record with the fastest precision whose vectors are those of sentence-transformers.

    Raises:
        ValueError: there is none.
    """
    expected = _reference(model, record.passage_prompt, _CHECKED_TEXTS)
    preferred = native_precision()
    precisions: tuple[Precision, ...] = ("bf16", "f32") if preferred == "bf16" else ("f32",)
    for precision in precisions:
        candidate = replace(record, runtime="openvino", reason="", precision=precision)
        vectors = OpenVinoModel(folder, candidate).embed_passages(_CHECKED_TEXTS)
        alike = float((vectors * expected).sum(axis=1).min())
        if alike >= _ALIKE:
            return candidate
    raise ValueError(f"its vectors differ: cosine {alike:.4f}")


def _reference(model: "SentenceTransformer", prompt: str, texts: Sequence[str]) -> Vectors:
    vectors = model.encode(
        [well_formed(text) for text in texts],
        prompt=prompt,
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    return normalised(np.asarray(vectors, dtype=np.float32))


class TorchSentenceModel:
    """An Embedder that sentence-transformers runs, for models that OpenVINO does not run.

    Thread-safe, one call at a time.
    """

    def __init__(self, source: Path, folder: Path, record: ModelRecord) -> None:
        self._model = _load(source)
        self._record = record
        self._tokens = _tokenization(folder)
        self._one_at_a_time = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        return self._record.identity

    @property
    def max_tokens(self) -> int:
        return self._record.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.counts([self._record.passage_prompt + text for text in texts])

    def token_ends(self, text: str) -> list[int]:
        return self._tokens.ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        deadline.check()
        return self._embed(texts, self._record.query_prompt)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._record.passage_prompt)

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        if not texts:
            return np.empty((0, self._record.dimension), dtype=np.float32)
        with self._one_at_a_time:
            return _reference(self._model, prompt, texts)


def _tokenization(folder: Path) -> Tokenization:
    file = folder / TOKENIZER_FILE
    return ModelTokenizer.from_file(file) if file.is_file() else EstimatedTokens()
