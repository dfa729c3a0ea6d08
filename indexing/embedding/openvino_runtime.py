"""Runs networks with OpenVINO on this processor, and makes the nodes they are built of.

A network is compiled for one purpose, when it is first used. Reading and compiling takes a third of a second, once `CACHE_DIR` holds the compiled form. Where the
processor computes in bfloat16 it does so: 1.7 times the speed of float32 at a cosine of 0.9999 with it.
"""

import os
import shutil
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Literal, TypeAlias

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from indexing.embedding.embedder import Vectors

# On import OpenVINO reports its use over the network, from a forked process. A module that is None
# cannot be imported, and without this one it keeps quiet.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

import openvino as ov  # type: ignore[import-untyped]  # noqa: E402

Precision: TypeAlias = Literal["bf16", "f32"]
Purpose: TypeAlias = Literal["LATENCY", "THROUGHPUT"]
"""LATENCY: one input as soon as possible, by all threads together. THROUGHPUT: most inputs a second, each by
one thread or a few. On two cores the second embeds passages in two thirds of the time, also while others use
the cores: no thread waits for another at every layer."""
Inputs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Token ids and attention mask, both of shape (texts, tokens)."""

ov_ops = ov.opset13
Node: TypeAlias = Any
"""A node of a graph; the library has no types."""
INPUT_NAMES = ("input_ids", "attention_mask")

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


@dataclass(frozen=True, slots=True)
class TokenInputs:
    """What every network here is given, as nodes: both of shape (texts, tokens)."""

    ids: Node
    mask: Node


def token_inputs() -> TokenInputs:
    """Make the inputs of a new graph, for any number of texts and tokens."""
    return TokenInputs(*map(_token_input, INPUT_NAMES))


def _token_input(name: str) -> Node:
    node = ov_ops.parameter([-1, -1], np.int64, name)
    node.output(0).set_names({name})
    return node


def constant(values: NDArray[Any]) -> Node:
    """Make a node of weights, without copying them; they are computed with in 32 bits."""
    node = ov.op.Constant(np.require(values, requirements=["C", "A"]), shared_memory=True)
    return node if values.dtype == np.float32 else ov_ops.convert(node, np.float32)


def linear(hidden: Node, weight: Node, bias: Node | None = None) -> Node:
    product = ov_ops.matmul(hidden, weight, transpose_a=False, transpose_b=True)
    return product if bias is None else ov_ops.add(product, bias)


def token_range(ids: Node) -> Node:
    """Return the numbers from 0 up to the number of tokens of a text."""
    tokens = ov_ops.gather(ov_ops.shape_of(ids), np.int64(1), 0)
    return ov_ops.range(np.int64(0), tokens, np.int64(1), output_type="i64")


def read_network(file: Path) -> Node:
    """Read an OpenVINO or ONNX file.

    Raises:
        RuntimeError: it is damaged, or uses something that OpenVINO does not know.
    """
    return _core().read_model(file)


def save_graph(inputs: TokenInputs, vectors: Node, folder: Path) -> None:
    """Save a network with 16-bit weights."""
    model = ov.Model([vectors], [inputs.ids, inputs.mask], "embedder")
    ov.save_model(model, folder / MODEL_FILE, compress_to_fp16=True)


def save_converted(traceable: object, example: Mapping[str, object], folder: Path) -> None:
    """Trace a torch module with example inputs, and save it with 16-bit weights."""
    converted = ov.convert_model(traceable, example_input=dict(example))
    ov.save_model(converted, folder / MODEL_FILE, compress_to_fp16=True)


def delete_compiled(folder: Path) -> None:
    """Delete the compiled form, of no use in a folder that moves: it is known by the model's path."""
    shutil.rmtree(folder / _COMPILED_FOLDER, ignore_errors=True)


class Network:
    """The network of a folder, compiled when it is first used. Thread-safe.

    Args:
        threads: that compute, for all inputs together; all of the processor's by default.
    """

    def __init__(
        self, folder: Path, precision: Precision, purpose: Purpose, threads: int | None = None
    ) -> None:
        self._folder = folder
        self._settings: dict[str, str | int] = {
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": purpose,
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
