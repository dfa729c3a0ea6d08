"""Checks that a model computed in a faster precision still gives the vectors it should."""

from dataclasses import replace
from pathlib import Path

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


def measure_min_cosine(folder: Path, record: ModelRecord, expected: Vectors) -> float:
    """Compare a model's vectors of CHECKED_TEXTS with those expected, and return the least cosine."""
    vectors = OpenVinoEmbedder(folder, record).embed_passages(CHECKED_TEXTS)
    return float((vectors * expected).sum(axis=1).min())


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
