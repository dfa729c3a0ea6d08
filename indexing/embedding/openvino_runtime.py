"""Networks that OpenVINO runs on this processor: compiled for one purpose each, when they are first asked.

Reading and compiling takes a third of a second, once `CACHE_DIR` holds the compiled form. Where the
processor computes in bfloat16 it does so: 1.7 times the speed of float32 at a cosine of 0.9999 with it.
"""

import os
import shutil
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Literal, TypeAlias

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
"""One input as soon as may be, by all threads together; or most inputs a second, each by a thread or a few of
its own. On two cores the second embeds passages in two thirds of the time, also while others use the cores: no
thread waits for another at every layer."""
Inputs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Token ids and attention mask, both of shape (texts, tokens)."""

MODEL_FILE = "model.xml"
_COMPILED_FOLDER = "compiled"
_AHEAD = 2
"""Inputs at once for each that can be computed at once: so that none is waited for."""


@cache
def _core() -> ov.Core:
    return ov.Core()


def native_precision() -> Precision:
    """The fastest precision that keeps the ranking: bfloat16 where the processor has it."""
    return "bf16" if "BF16" in _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"


def save_converted(traceable: object, example: Mapping[str, object], folder: Path) -> None:
    """Trace a torch module with example inputs, and save it with 16-bit weights."""
    converted = ov.convert_model(traceable, example_input=dict(example))
    ov.save_model(converted, folder / MODEL_FILE, compress_to_fp16=True)


def forget_compiled(folder: Path) -> None:
    """For a folder that will be moved: the compiled form is known by the model's path."""
    shutil.rmtree(folder / _COMPILED_FOLDER, ignore_errors=True)


class Network:
    """The model of a folder. Thread-safe.

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
        """As many as were ever needed at once, and not one a thread: threads of a server come and go."""

    def outputs(self, inputs: Iterable[Inputs]) -> Generator[Vectors]:
        """Of each its vectors of shape (texts, dimension), in their order; the next are computed meanwhile.

        To be closed, where it is not read to its end.
        """
        running: deque[ov.InferRequest] = deque()
        try:
            for tokens, mask in inputs:
                if len(running) == self._most_at_once:
                    yield self._output(running)
                running.append(self._request())
                running[-1].start_async({0: tokens, 1: mask})
            while running:
                yield self._output(running)
        finally:
            while running:
                # Whoever stopped reading has a reason of their own, and a request that failed is not used again.
                with suppress(RuntimeError):
                    self._output(running)

    def _output(self, running: deque[ov.InferRequest]) -> Vectors:
        """Of the first that runs, once it is there; its request is idle again."""
        request = running.popleft()
        request.wait()
        output: Vectors = request.get_output_tensor(0).data.copy()
        self._idle.put(request)
        return output

    def _request(self) -> ov.InferRequest:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._compiled.create_infer_request()

    @cached_property
    def _most_at_once(self) -> int:
        return _AHEAD * int(self._compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))

    @property
    def _compiled(self) -> ov.CompiledModel:
        with self._lock:
            return self._compiled_once

    @cached_property
    def _compiled_once(self) -> ov.CompiledModel:
        """Compiled for this processor, or taken compiled from beside the model."""
        folder = self._folder
        if not os.access(folder, os.W_OK):
            return _core().compile_model(folder / MODEL_FILE, "CPU", self._settings)
        # Two processes that compile at once would write the same file under each other's feet.
        with FileLock(folder / "compiled.lock"):
            kept = {**self._settings, "CACHE_DIR": str(folder / _COMPILED_FOLDER)}
            return _core().compile_model(folder / MODEL_FILE, "CPU", kept)
