"""Runs an embedding model that was prepared for OpenVINO. Needs no torch, and little memory.

A process that only embeds queries takes about 180 MB, one that only embeds passages some more.
"""

import json
import os
import shutil
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Literal, TypeAlias

import numpy as np
import openvino as ov  # type: ignore[import-untyped]
from filelock import FileLock
from numpy.typing import NDArray

from indexing.embedding.embedder import EmbedderIdentity, Vectors
from indexing.embedding.model_config import Padding
from indexing.embedding.token_counting import Ids, ModelTokenizer
from indexing.embedding.tokenizer_file import TOKENIZER_FILE
from indexing.runtime.deadline import Deadline

Precision: TypeAlias = Literal["bf16", "f32"]
Inputs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Token ids and attention mask, both of shape (texts, tokens)."""

Batch: TypeAlias = list[int]
"""The places of the texts that are embedded together."""

MODEL_FILE = "model.xml"
_COMPILED_FOLDER = "compiled"
_AHEAD = 2
"""Inputs queued for each that can be computed at once, so that no thread is idle between two."""
_SETTING_INPUTS = threading.Lock()


@cache
def _core() -> ov.Core:
    return ov.Core()


def detect_native_precision() -> Precision:
    """Return the fastest precision that keeps the ranking: bfloat16 where the processor has it."""
    return "bf16" if "BF16" in _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"


def delete_compiled(folder: Path) -> None:
    """Delete the compiled form, of no use in a folder that moves: it is known by the model's path."""
    shutil.rmtree(folder / _COMPILED_FOLDER, ignore_errors=True)


class Network:
    """The network of a folder, compiled when it is first used. Thread-safe.

    Args:
        threads: that compute, for all inputs together; all of the processor's by default.
    """

    def __init__(self, folder: Path, precision: Precision, threads: int | None = None) -> None:
        self._folder = folder
        self._settings: dict[str, str | int | bool] = {
            "INFERENCE_PRECISION_HINT": precision,
            # Each input by one thread or a few: on two cores passages are embedded in two thirds of the time that all threads
            # together take, which wait for each other at every layer, and a query need not wait for the input before it.
            "PERFORMANCE_HINT": "THROUGHPUT",
            # Pinned threads stay on the first cores, in every process on the same ones.
            "ENABLE_CPU_PINNING": False,
        }
        if threads is not None:
            self._settings["INFERENCE_NUM_THREADS"] = threads
        self._lock = threading.Lock()
        self._idle: LifoQueue[ov.InferRequest] = LifoQueue()
        """As many as were ever needed at once. Not one per thread, since threads of a server come and go."""

    def infer(self, inputs: Iterable[Inputs]) -> Generator[Vectors]:
        """Yield the vectors of each input, of shape (texts, dimension), while the next are computed.

        Close the generator where it is not read to its end.
        """
        running: deque[ov.InferRequest] = deque()
        try:
            for tokens, mask in inputs:
                if len(running) == self._max_running:
                    yield self._wait_for_first(running)
                running.append(self._take_request())
                # Two threads whose first inputs are set at once can wait for each other for ever: one
                # holds the interpreter's lock, the other that of OpenVINO's first use of numpy.
                with _SETTING_INPUTS:
                    running[-1].start_async({0: tokens, 1: mask})
            while running:
                yield self._wait_for_first(running)
        finally:
            while running:
                # The caller stopped for a reason of its own; a request that failed is not used again.
                with suppress(RuntimeError):
                    self._wait_for_first(running)

    def _wait_for_first(self, running: deque[ov.InferRequest]) -> Vectors:
        """Return the vectors of the input that was started first, and free its request."""
        request = running.popleft()
        request.wait()
        output: Vectors = request.get_output_tensor(0).data.copy()
        self._idle.put(request)
        return output

    def _take_request(self) -> ov.InferRequest:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._model.create_infer_request()

    @cached_property
    def _max_running(self) -> int:
        return _AHEAD * int(self._model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))

    @property
    def _model(self) -> ov.CompiledModel:
        with self._lock:
            return self._compiled_model

    @cached_property
    def _compiled_model(self) -> ov.CompiledModel:
        """Compile the network, or load the compiled form kept beside it."""
        folder = self._folder
        if not os.access(folder, os.W_OK):
            return _core().compile_model(folder / MODEL_FILE, "CPU", self._settings)
        # Two processes that compile at once would write the same file under each other's feet.
        with FileLock(folder / "compiled.lock"):
            kept = {**self._settings, "CACHE_DIR": str(folder / _COMPILED_FOLDER)}
            return _core().compile_model(folder / MODEL_FILE, "CPU", kept)


_RECORD_FILE = "record.json"

# Small batches of like length are fastest on a CPU: four passages of 256 tokens.
_PASSAGE_TOKENS = 1024
"""Of one batch, padding included."""
_QUERY_TOKENS = 128
"""Of one batch, padding included. On a single core a search waits for the batch that is being computed when it comes: 20 to 80 ms."""
_BATCH_TEXTS = 32
# Kernels are made and kept per shape, so lengths are rounded up to bound how many there are.
_LENGTH_STEP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """How to run a prepared model; kept beside it as JSON."""

    model: str
    version: str
    runtime: Literal["openvino", "sentence-transformers"]
    reason: str
    """Why OpenVINO does not run it; empty where it does."""
    precision: Precision
    dimension: int
    max_tokens: int
    pad_id: int
    padding: Padding
    query_prompt: str
    passage_prompt: str

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity(
            model=self.model,
            version=self.version,
            precision=self.precision,
            dimension=self.dimension,
        )


def write_record(folder: Path, record: ModelRecord) -> None:
    (folder / _RECORD_FILE).write_text(json.dumps(asdict(record), indent=2), encoding="utf-8")


def read_record(folder: Path) -> ModelRecord | None:
    """Return None where no preparation has been finished."""
    file = folder / _RECORD_FILE
    if not file.is_file():
        return None
    return ModelRecord(**json.loads(file.read_text(encoding="utf-8")))


class OpenVinoEmbedder:
    """An Embedder of a folder that `model_loading.load_embedder` has filled. Thread-safe."""

    def __init__(self, folder: Path, record: ModelRecord, threads: int | None = None) -> None:
        self._record = record
        self._tokenizer = ModelTokenizer.from_file(folder / TOKENIZER_FILE)
        self._for_queries = Network(folder, record.precision, threads)
        self._several_batches = threading.Lock()
        """Held for each batch of texts that fill more than one, such as those of a check of citations: of all these one batch
        at a time is computed, beside which there is room for a search, which needs one batch."""
        self._for_passages = Network(folder, record.precision, threads)

    @cached_property
    def identity(self) -> EmbedderIdentity:
        return self._record.identity

    @property
    def max_tokens(self) -> int:
        return self._record.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count with the prompt that the model wants before a passage, since it takes room as well."""
        return self._tokenizer.count_tokens([self._record.passage_prompt + text for text in texts])

    def token_ends(self, text: str) -> Sequence[int]:
        return self._tokenizer.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        """Embed queries; one that is too long is cut off at the limit."""
        ids = self._encode([self._record.query_prompt + text for text in texts])
        batches = list(make_batches([len(each) for each in ids], _QUERY_TOKENS))
        overtaken = self._several_batches if len(batches) > 1 else nullcontext()

        def infer() -> Iterator[Vectors]:
            for batch in batches:
                with overtaken:
                    deadline.check()
                    outputs = list(self._infer(self._for_queries, ids, [batch]))
                yield from outputs

        return self._join(batches, infer())

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        ids = self._encode([self._record.passage_prompt + text for text in texts])
        batches = list(make_batches([len(each) for each in ids], _PASSAGE_TOKENS))
        with closing(self._infer(self._for_passages, ids, batches)) as outputs:
            return self._join(batches, outputs)

    def _encode(self, texts: Sequence[str]) -> Sequence[Ids]:
        return self._tokenizer.encode(texts, self.max_tokens)

    def _infer(
        self, network: Network, ids: Sequence[Ids], batches: Iterable[Batch]
    ) -> Generator[Vectors]:
        return network.infer(
            pad_batch([ids[place] for place in batch], self._record) for batch in batches
        )

    def _join(self, batches: Sequence[Batch], outputs: Iterable[Vectors]) -> Vectors:
        """Return the vectors of all texts in their order, of length 1."""
        vectors = np.empty((sum(map(len, batches)), self._record.dimension), dtype=np.float32)
        for batch, output in zip(batches, outputs, strict=True):
            vectors[batch] = output
        return normalize_vectors(vectors)


def make_batches(lengths: Sequence[int], most_tokens: int) -> Iterator[Batch]:
    """Group texts of like length, the shortest first.

    No text is padded to more than twice its length, and only a single text has more tokens than `most_tokens`.
    """
    batch: Batch = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[place]
        is_full = len(batch) == _BATCH_TEXTS or (len(batch) + 1) * length > most_tokens
        if batch and (is_full or length > max(2 * lengths[batch[0]], _LENGTH_STEP)):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def pad_batch(batch: Sequence[Ids], record: ModelRecord) -> Inputs:
    """Return token ids and attention mask, both of shape (texts, longest text rounded up)."""
    longest = max(map(len, batch))
    rounded = -(-longest // _LENGTH_STEP) * _LENGTH_STEP
    width = max(longest, min(rounded, record.max_tokens))
    tokens = np.full((len(batch), width), record.pad_id, dtype=np.int64)
    mask = np.zeros_like(tokens)
    for row, ids in enumerate(batch):
        start = width - len(ids) if record.padding == "left" else 0
        tokens[row, start : start + len(ids)] = ids
        mask[row, start : start + len(ids)] = 1
    return tokens, mask


def normalize_vectors(vectors: Vectors) -> Vectors:
    """Scale rows to length 1; a row of zeros, which has no direction, gets that of the first axis."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[(lengths == 0).ravel(), 0] = 1
    unit: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit
