"""Checks that a model computed in a faster precision still gives the vectors it should."""

import io
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from indexing.embedding.embedder import Vectors
from indexing.embedding.openvino_embedder import (
    ModelRecord,
    OpenVinoEmbedder,
    Precision,
    detect_native_precision,
)

MIN_COSINE = 0.999
"""Between the vectors of each text below and those that are known to be right."""
CHECKED_TEXTS = (
    "a",
    "Who approves travel abroad?",
    "The deposit is paid back within thirty days, less the cost of repairs.",
    "Fehlercode E-1042: Das Gerät startet nicht.",
    "有給休暇は年に二十日です。",
    "Выходные дни указаны в договоре.",
    "long text " * 40,
    "one two three four five six seven eight nine ten " * 200,
)


_PROGRAM = f"from {__name__} import write_checked_vectors; write_checked_vectors()"
_SECONDS = 120


def measure_min_cosine(folder: Path, record: ModelRecord, expected: Vectors) -> float:
    """Compare a model's vectors of CHECKED_TEXTS with those expected, and return the least cosine.

    A virtual machine may announce instructions that it does not run; a program that meets one is ended. So a faster
    precision is tried in a process of its own, and 0 is returned where that does not survive.
    """
    vectors = (
        _embed_checked(folder, record)
        if record.precision == "f32"
        else _embed_isolated(folder, record)
    )
    return 0.0 if vectors is None else float((vectors * expected).sum(axis=1).min())


def _embed_checked(folder: Path, record: ModelRecord) -> Vectors:
    return OpenVinoEmbedder(folder, record).embed_passages(CHECKED_TEXTS)


def _embed_isolated(folder: Path, record: ModelRecord) -> Vectors | None:
    order = json.dumps({"folder": str(folder), "record": asdict(record)})
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            input=order.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    vectors: Vectors = np.load(io.BytesIO(done.stdout))
    return vectors


def write_checked_vectors() -> None:
    """Read a folder and a record from standard input, and write the vectors of CHECKED_TEXTS to standard output."""
    order = json.load(sys.stdin)
    vectors = _embed_checked(Path(order["folder"]), ModelRecord(**order["record"]))
    # Not to standard output itself: numpy asks files for their position, which a pipe has not.
    written = io.BytesIO()
    np.save(written, vectors)
    sys.stdout.buffer.write(written.getvalue())


def choose_precision(folder: Path, record: ModelRecord, expected: Vectors) -> ModelRecord:
    """Return the record with the fastest precision whose vectors are those expected.

    Args:
        folder: that of the model.
        expected: the right vectors of CHECKED_TEXTS.

    Raises:
        ValueError: no precision gives them.
    """
    precisions: tuple[Precision, ...] = ("bf16", "f32")
    for precision in precisions[precisions.index(detect_native_precision()) :]:
        candidate = replace(record, precision=precision)
        cosine = measure_min_cosine(folder, candidate, expected)
        if cosine >= MIN_COSINE:
            return candidate
    raise ValueError(f"its vectors differ: cosine {cosine:.4f}")
