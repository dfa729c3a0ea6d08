"""Group results of search engines that say alike things, by meaning, or by words where an embedder does not help.

Results of one query are all alike. What they have in common is taken off first: of vectors their mean (as the language
probe does), of words those that most results hold. The thresholds were fitted by `tests/benchmarks/result_clusters.py`.
"""

import math
from collections.abc import Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from backend.research.references.chunk_likeness import embed_texts, find_understood
from backend.web_search.results import WebResult
from connectors.text_cleaning import remove_invisible
from indexing.embedding.language_support import EmbedderWithLanguages
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import words

MOST_RESULTS = 50
LEAST_COSINE = 0.15
"""Of what is left of two vectors without the mean of all."""
LEAST_WORD_COSINE = 0.07
"""Of the words of two results, each weighted by how few results hold it (inverse document frequency)."""

Cluster: TypeAlias = tuple[WebResult, ...]
Likeness: TypeAlias = NDArray[np.float64]
"""Shape (results, results); from 1 on two results are alike enough for a cluster."""


def cluster_results(
    results: Sequence[WebResult], model: EmbedderWithLanguages, deadline: Deadline
) -> list[Cluster]:
    """Return the clusters of at least two of the first 50 addresses, by their first results.

    All are embedded by one call. In which order they come makes no difference to which are together.

    Raises:
        DeadlineExceededError: there was no time for the words either.
    """
    by_address: dict[str, WebResult] = {}
    for result in results:
        if describe_result(result):
            by_address.setdefault(result.url, result)
    first = list(islice(by_address.values(), MOST_RESULTS))
    place = {result.url: at for at, result in enumerate(first)}
    ordered = sorted(first, key=lambda result: result.url)
    groups = link_groups(_compare(list(map(describe_result, ordered)), model, deadline))
    clusters = (sorted(place[ordered[at].url] for at in group) for group in groups)
    found = sorted(cluster for cluster in clusters if len(cluster) > 1)
    return [tuple(first[at] for at in cluster) for cluster in found]


def describe_result(result: WebResult) -> str:
    parts = (" ".join(remove_invisible(one).split()) for one in (result.title, result.summary))
    return ". ".join(part for part in parts if part)


def link_groups(likeness: Likeness) -> list[list[int]]:
    """Join the two most alike groups as long as their members are alike in the mean (average linkage).

    Args:
        likeness: symmetric.
    """
    groups = [[at] for at in range(len(likeness))]
    means = likeness.astype(np.float64)
    np.fill_diagonal(means, -np.inf)
    while len(groups) > 1:
        first, second = sorted(map(int, np.unravel_index(means.argmax(), means.shape)))
        if means[first, second] < 1:
            break
        sizes = [len(groups[first]), len(groups[second])]
        means[first] = means[:, first] = np.average(means[[first, second]], axis=0, weights=sizes)
        means = np.delete(np.delete(means, second, axis=0), second, axis=1)
        groups[first] += groups.pop(second)
    return groups


def _compare(texts: Sequence[str], model: EmbedderWithLanguages, deadline: Deadline) -> Likeness:
    likeness = compare_words(texts) / LEAST_WORD_COSINE
    understood = find_understood(texts, model.understanding)
    chosen = [texts[at] for at in understood]
    vectors = embed_texts(chosen, model, deadline) if len(chosen) > 1 else None
    deadline.check()
    if vectors is not None:
        cosines = compare_rows(vectors - vectors.mean(axis=0))
        likeness[np.ix_(understood, understood)] = cosines / LEAST_COSINE
    return likeness


def compare_words(texts: Sequence[str]) -> Likeness:
    """Return the cosines of texts by their words: a word counts the more, the fewer of them hold it."""
    held = [frozenset(words(text)) for text in texts]
    columns = {word: at for at, word in enumerate(sorted(frozenset[str]().union(*held)))}
    table = np.zeros((len(texts), len(columns)))
    for row, found in zip(table, held, strict=True):
        row[[columns[word] for word in found]] = 1
    rarity = math.log(max(1, len(texts))) - np.log(np.maximum(1, table.sum(axis=0)))
    return compare_rows(table * rarity)


def compare_rows(rows: NDArray[np.floating]) -> Likeness:
    """Return the cosines of rows; a row of zeros is like no other."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    directions = rows / np.maximum(lengths, 1e-6)
    cosines: Likeness = (directions @ directions.T).astype(np.float64)
    return (cosines + cosines.T) / 2
