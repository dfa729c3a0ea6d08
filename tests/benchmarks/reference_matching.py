"""Pairing the chunks of an answer with those of its sources, vectors given, over one matrix product of the same.

    .venv/bin/python -m tests.benchmarks.reference_matching [--sources N] [--answers N]

The vectors are drawn around so many centres that every answer chunk has sources like it, as sources of one question have; one
in ten answer chunks is a source chunk word for word. Times are the best of several runs, in turns. Memory is the highest of
what numpy holds in a run beside the vectors that are given. Exits with 1 where pairing takes more than three products' time, or
more than half of a product's memory.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from backend.research.references.chunk_likeness import LEAST_COSINE
from backend.research.references.chunk_matching import Match, choose_matches, match_vectors
from indexing.embedding.embedder import Vectors
from indexing.runtime.deadline import Deadline

SOURCES, ANSWERS, DIMENSION = 100_000, 500, 384
CENTRES = 2_000
SPREAD = 0.03
RUNS = 5
MOST_TIME = 3.0
"""Of one matrix product."""
MOST_MEMORY = 0.5
"""Of what the product takes: blocks of it are held, never all of it."""
PATIENCE = 600.0
"""Seconds for one run."""


@dataclass(frozen=True)
class Given:
    answers: Vectors
    sources: Vectors


def draw_vectors(answers: int, sources: int) -> Given:
    drawn = np.random.default_rng(7)
    centres = drawn.normal(size=(CENTRES, DIMENSION)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)

    def draw(count: int) -> Vectors:
        noise = drawn.normal(scale=SPREAD, size=(count, DIMENSION)).astype(np.float32)
        vectors: Vectors = centres[drawn.integers(CENTRES, size=count)] + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    given = Given(draw(answers), draw(sources))
    given.answers[::10] = given.sources[: len(given.answers[::10])]
    return given


def multiply(given: Given) -> Vectors:
    product: Vectors = given.answers @ given.sources.T
    return product


def pair(given: Given) -> list[Match]:
    return choose_matches(
        match_vectors(given.answers, given.sources, LEAST_COSINE, Deadline.after(PATIENCE))
    )


def measure_time(call: Callable[[Given], object], given: Given) -> float:
    began = time.perf_counter()
    call(given)
    return time.perf_counter() - began


def measure_memory(call: Callable[[Given], object], given: Given) -> int:
    tracemalloc.start()
    try:
        call(given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=SOURCES)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    options = parser.parse_args()
    given = draw_vectors(options.answers, options.sources)
    candidates = len(
        match_vectors(given.answers, given.sources, LEAST_COSINE, Deadline.after(PATIENCE))
    )
    times = [(measure_time(multiply, given), measure_time(pair, given)) for _ in range(RUNS)]
    product, pairing = (min(each) for each in zip(*times, strict=True))
    print(f"{options.answers} × {options.sources}, {candidates} candidates")
    print(
        f"one matrix product {product:.2f} s; pairing {pairing:.2f} s; ratio {pairing / product:.2f}"
    )
    whole, blocks = (measure_memory(call, given) for call in (multiply, pair))
    print(f"memory of the product: {whole / 1e6:.0f} MB; of pairing: {blocks / 1e6:.0f} MB")
    sys.exit(pairing > MOST_TIME * product or blocks > MOST_MEMORY * whole)


if __name__ == "__main__":
    main()
