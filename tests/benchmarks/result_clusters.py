"""Which likeness makes clusters of search results, for the thresholds of `backend/research/result_clusters.py`.

    .venv/bin/python -m tests.benchmarks.result_clusters [--data ../shared/data]

Results are pairs of sentences of XQuAD (English). On several subjects: five of each of eight articles, which are the right
clusters. On one subject, as of one query: four of each of five paragraphs of an article. Of all pairs that are together
the share of right ones (precision) is printed, and of all right pairs the share that is together (recall): by cosines of
the vectors as they are, without their mean, and by words.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from backend.research.result_clusters import Likeness, compare_rows, compare_words, link_groups
from indexing.runtime.deadline import Deadline
from tests.support.models import minilm

DATA = Path(__file__).parents[3] / "shared" / "data"
ROUNDS, SEED, CHARACTERS = 12, 20261126, 220
THRESHOLDS = {
    "vectors": (0.2, 0.3, 0.4, 0.5, 0.6),
    "without mean": (0.05, 0.1, 0.15, 0.2, 0.25),
    "words": (0.03, 0.05, 0.07, 0.1),
}
Labelled: TypeAlias = list[tuple[int, str]]
"""The right cluster of each result, and its text."""


def read_articles(data: Path) -> list[list[str]]:
    """Return the paragraphs of each article; five in a row are of one."""
    with gzip.open(data / "xquad" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = [row["text"] for row in rows if row["_id"].startswith("en-")]
    return [texts[start : start + 5] for start in range(0, len(texts), 5)]


def cut(paragraph: str) -> list[str]:
    sentences = re.split(r"(?<=[.!?]) ", paragraph)
    return [" ".join(sentences[at : at + 2])[:CHARACTERS] for at in range(0, len(sentences), 2)]


def take_subjects(articles: Sequence[list[str]], chance: random.Random) -> Labelled:
    chosen = chance.sample(range(len(articles)), 8)
    return [(at, chance.choice(cut(text))) for at in chosen for text in articles[at]]


def take_one_subject(articles: Sequence[list[str]], chance: random.Random) -> Labelled:
    paragraphs = enumerate(chance.choice(articles))
    return [(at, text) for at, paragraph in paragraphs for text in cut(paragraph)[:4]]


def compare(texts: Sequence[str]) -> Iterator[tuple[str, Likeness]]:
    vectors = minilm().embed_queries(texts, Deadline.after(60))
    yield "vectors", compare_rows(vectors)
    yield "without mean", compare_rows(vectors - vectors.mean(axis=0))
    yield "words", compare_words(texts)


def count_pairs(groups: Sequence[Sequence[int]], labels: Sequence[int]) -> tuple[int, int, int]:
    """Return how many pairs are together and right, together, and right."""
    together = [pair for group in groups for pair in combinations(group, 2)]
    right = sum(labels[one] == labels[other] for one, other in together)
    return right, len(together), sum(one == other for one, other in combinations(labels, 2))


def measure(
    take: Callable[[Sequence[list[str]], random.Random], Labelled], articles: Sequence[list[str]]
) -> None:
    counts: dict[tuple[str, float], list[tuple[int, int, int]]] = {}
    chance = random.Random(SEED)
    for _ in range(ROUNDS):
        labels, texts = zip(*take(articles, chance), strict=True)
        for name, likeness in compare(texts):
            for least in THRESHOLDS[name]:
                found = count_pairs(link_groups(likeness / least), labels)
                counts.setdefault((name, least), []).append(found)
    for (name, least), found_counts in counts.items():
        right, together, all_right = map(sum, zip(*found_counts, strict=True))
        print(
            f"{name:>13} {least:4}: precision {right / max(1, together):.2f}, recall {right / all_right:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    articles = read_articles(parser.parse_args().data)
    for title, take in (("several subjects", take_subjects), ("one subject", take_one_subject)):
        print(title)
        measure(take, articles)


if __name__ == "__main__":
    main()
