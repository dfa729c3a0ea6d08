"""Snippets of long pages chosen by windows that are embedded alone, and by late chunking (Günther et al. 2024).

    .venv/bin/python -m tests.benchmarks.late_chunking [--data ../shared/data] [--paragraphs N]

Pages are so many paragraphs of XQuAD in a row. With late chunking, the vector of a window is the mean of the vectors of
its tokens as the model makes them of the page around it: of spans that overlap by half, each token is taken from the
span where it is nearest to the middle. Right is a snippet that holds the answer; windows, runs and budget are those of
`backend/web_search/page_snippets.py`. For each way the share of right first snippets is printed, and the
processor time for a page.
"""

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov  # type: ignore[import-untyped]

from backend.search.word_scores import Scores
from backend.web_search import page_snippets
from backend.web_search.page_snippets import SnippetBudget
from connectors.document import Span
from indexing.embedding.embedder import Vectors
from indexing.embedding.graph_nodes import token_inputs
from indexing.embedding.model_building import plan_graph
from indexing.embedding.model_loading import find_model
from indexing.embedding.openvino_embedder import normalize_vectors
from indexing.embedding.tokenizer_file import read_tokenizer
from indexing.runtime.deadline import Deadline
from tests.support.models import MINILM, minilm

DATA = Path(__file__).parents[3] / "shared" / "data"
CHARACTERS = 600
SPAN_TOKENS = 254
"""Of a page that are read together; two more are special."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    page: str
    answers: tuple[str, ...]


def read_questions(data: Path, paragraphs: int) -> list[Question]:
    """Return the questions in English, each with the page that its paragraph is part of."""
    with gzip.open(data / "xquad" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = [row["text"] for row in rows if row["_id"].startswith("en-")]
    lines = (data / "xquad" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    asked: list[dict[str, Any]] = [json.loads(line) for line in lines if '"_id": "en-' in line]
    pages = [
        "\n\n".join(texts[start : start + paragraphs]) for start in range(0, len(texts), paragraphs)
    ]
    return [
        Question(
            row["text"],
            pages[row["metadata"]["paragraph"] // paragraphs],
            tuple(row["metadata"]["answers"]),
        )
        for row in asked
    ]


class TokenVectors:
    """The vectors of all tokens of a page, before they are pooled."""

    def __init__(self) -> None:
        plan = plan_graph(find_model(MINILM).folder)
        inputs = token_inputs()
        model = ov.Model([plan.build_tokens(inputs)], [inputs.ids, inputs.mask], "tokens")
        self._network = ov.Core().compile_model(model, "CPU")
        self._tokenizer = read_tokenizer(plan.config)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def embed(self, page: str) -> tuple[list[int], Vectors]:
        """Return where each token ends, and its vector."""
        encoding = self._tokenizer.encode(page)
        first, *ids, last = encoding.ids
        vectors = np.zeros((len(ids), 384), np.float32)
        nearest = np.full(len(ids), np.inf)
        for start in range(0, max(1, len(ids) - SPAN_TOKENS // 2), SPAN_TOKENS // 2):
            part = ids[start : start + SPAN_TOKENS]
            tokens = np.array([[first, *part, last]], np.int64)
            found = self._network([tokens, np.ones_like(tokens)])[0][0][1:-1]
            places = np.arange(start, start + len(part))
            distance = np.abs(places - (start + len(part) / 2))
            better = places[distance < nearest[places]]
            vectors[better] = found[better - start]
            nearest[better] = distance[better - start]
        return [end for _, end in encoding.offsets[1:-1]], vectors


def pool_late(page: str, windows: Sequence[Span], tokens: TokenVectors) -> Vectors:
    ends, vectors = tokens.embed(page)
    starts = np.searchsorted(ends, [window.start for window in windows], side="right")
    stops = np.searchsorted(ends, [window.end for window in windows], side="right")
    bounds = zip(starts, stops, strict=True)
    pooled = [vectors[start : max(stop, start + 1)].mean(axis=0) for start, stop in bounds]
    return normalize_vectors(np.stack(pooled))


def holds_answer(question: Question, windows: Sequence[Span], scores: Scores) -> bool:
    budget = SnippetBudget(CHARACTERS, 1)
    snippets = page_snippets._pick_snippets(question.page, windows, scores, budget)
    return any(answer in snippets[0].text for answer in question.answers)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--paragraphs", type=int, default=5)
    options = parser.parse_args()
    by_page = defaultdict[str, list[Question]](list)
    for question in read_questions(options.data, options.paragraphs):
        by_page[question.page].append(question)
    embedder, tokens = minilm(), TokenVectors()
    right, seconds = Counter[str](), defaultdict[str, float](float)
    for page, questions in by_page.items():
        windows = page_snippets._cut_windows(page, embedder)
        begin = time.process_time()
        plain = embedder.embed_passages([one.of(page) for one in windows])
        middle = time.process_time()
        late = pool_late(page, windows, tokens)
        seconds["plain"] += middle - begin
        seconds["late"] += time.process_time() - middle
        asked = embedder.embed_queries([one.text for one in questions], Deadline.after(60))
        for question, vector in zip(questions, asked, strict=True):
            cosines = {"plain": plain @ vector, "late": late @ vector}
            cosines["mean of both"] = (cosines["plain"] + cosines["late"]) / 2
            right.update(
                name
                for name, scores in cosines.items()
                if holds_answer(question, windows, scores.astype(np.float64))
            )
    count, size = sum(map(len, by_page.values())), sum(map(len, by_page)) / len(by_page)
    print(f"{count} questions, {len(by_page)} pages of {size:,.0f} characters")
    for name in ("plain", "late", "mean of both"):
        print(f"{name:>13}: {right[name] / count:.3f} right, {seconds[name] / len(by_page):.2f} s")


if __name__ == "__main__":
    main()
