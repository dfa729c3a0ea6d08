"""Choose the parts of a long page that answer a question.

A page is cut into windows of equal length. Each is compared with the question, and the runs of neighboring windows
with the best mean are the snippets: a single sentence that sounds like the question weighs less than a passage about it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.search.futures import run_in_background
from backend.search.llm_protocol import CompletionError
from backend.search.word_scores import Scores, score_by_words
from connectors.document import Span
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.chunking.chunk import TokenizedText, find_break, split_sentences
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import EmbedderWithLanguages, LanguageSupport
from indexing.runtime.deadline import Deadline

MAX_CHARACTERS = 400_000
"""Of a page; what stands behind them is not read."""
MAX_WINDOWS = 64
"""That are embedded; of a page that has more, those whose words are nearest to the question."""
WINDOW_TOKENS = 64
"""Of a window at least."""
LONGEST_WINDOW_TOKENS = 128
"""Of the windows of a page that would have too many shorter ones: so a page costs 8,192 tokens of the embedder at most."""
SPECIAL_TOKENS = 8
"""That the embedder may add to a text."""
RUN_WINDOWS = 4
"""Neighboring windows of a snippet; fewer where so many are not free or do not fit."""
EMBEDDING_SHARE = 0.5
"""Of the time left, after which the windows are compared by their words."""
UNDERSTOOD = 0.5
"""The share of question and page that the embedder has to understand."""
SAMPLE_CHARACTERS = 2_000

_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class SnippetBudget:
    """The most that the snippets of a page may hold together; both at least 1."""

    characters: int
    snippets: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a page.

    Attributes:
        span: Where it stands in the text of the page.
        score: How near it is to the question; comparable within a page.
    """

    text: str
    span: Span
    score: float


def choose_snippets(
    page: str,
    question: str,
    model: EmbedderWithLanguages,
    budget: SnippetBudget,
    deadline: Deadline,
) -> list[Snippet]:
    """Return the parts of a page that are nearest to a question, the best first; they do not overlap.

    A page that fits is returned whole. Where the embedder does not understand the language, fails or is late, the
    windows are compared by their words.
    """
    text = page[:MAX_CHARACTERS]
    whole = Span(0, len(text)).trim(text)
    if whole is None:
        return []
    if whole.end - whole.start <= budget.characters:
        return [Snippet(whole.of(text), whole, 1.0)]
    windows = _cut_windows(text, model.embedder)
    scores = _score_windows([window.of(text) for window in windows], question, model, deadline)
    return _pick_snippets(text, windows, scores, budget)


def _cut_windows(text: str, embedder: Embedder) -> list[Span]:
    tokenized = TokenizedText(text, embedder.token_ends(text))
    most = min(LONGEST_WINDOW_TOKENS, max(1, embedder.max_tokens - SPECIAL_TOKENS))
    room = min(max(WINDOW_TOKENS, len(tokenized.ends) // MAX_WINDOWS), most)
    return tokenized.pack(split_sentences(text), room)


def _score_windows(
    texts: Sequence[str], question: str, model: EmbedderWithLanguages, deadline: Deadline
) -> Scores:
    by_words = score_by_words(texts, question)
    blank = np.array([_WORD.search(text) is None for text in texts], dtype=np.bool_)
    by_words[blank] = np.nan
    if not _is_understood(texts, question, model.understanding):
        return by_words
    chosen = _choose_windows(by_words)
    nearness = _embed([texts[place] for place in chosen], question, model.embedder, deadline)
    if nearness is None:
        return by_words
    scores = np.full(len(texts), np.nan)
    scores[chosen] = nearness
    return scores


def _choose_windows(by_words: Scores) -> NDArray[np.intp]:
    """Return the places of the windows to embed: all that are not blank, or the nearest by words with those around them."""
    present = np.flatnonzero(~np.isnan(by_words))
    if len(present) <= MAX_WINDOWS:
        return present
    around = np.convolve(np.nan_to_num(by_words), np.ones(2 * RUN_WINDOWS - 1), "same")[present]
    return np.sort(present[np.argsort(-around, kind="stable")[:MAX_WINDOWS]])


def _is_understood(texts: Sequence[str], question: str, understanding: LanguageSupport) -> bool:
    sample = " ".join(texts[: SAMPLE_CHARACTERS // WINDOW_TOKENS])[:SAMPLE_CHARACTERS]
    return min(map(understanding.vector_weight, (question, sample))) >= UNDERSTOOD


def _embed(
    texts: Sequence[str], question: str, embedder: Embedder, deadline: Deadline
) -> Scores | None:
    """Return the cosine of each text and the question; None where the embedder fails or is late."""
    limit = deadline.limited_to(deadline.remaining() * EMBEDDING_SHARE)
    if not texts or not question.strip() or not limit.remaining():
        return None
    try:
        return run_in_background(lambda: _compare(texts, question, embedder, limit), limit).result()
    except CompletionError:
        return None


def _compare(texts: Sequence[str], question: str, embedder: Embedder, deadline: Deadline) -> Scores:
    """Return the cosine of each text with the question. Raises CompletionError."""
    try:
        asked = embedder.embed_queries([question], deadline)[0]
        cosines: Scores = (embedder.embed_passages(texts) @ asked).astype(np.float64)
    except (TemporarilyUnavailableError, ActionRequiredError, TimeoutError) as error:
        raise CompletionError(str(error)) from error
    return cosines


def _pick_snippets(
    text: str, windows: Sequence[Span], scores: Scores, budget: SnippetBudget
) -> list[Snippet]:
    picked: list[Snippet] = []
    room = budget.characters
    left = scores.copy()
    while len(picked) < budget.snippets and (run := _find_run(windows, left, room)):
        span = Span(windows[run.start].start, windows[run.end - 1].end)
        picked.append(Snippet(span.of(text), span, float(left[run.start : run.end].mean())))
        left[run.start : run.end] = np.nan
        room -= span.end - span.start
    if not picked and not np.isnan(scores).all():
        picked.append(_cut_best(text, windows, scores, budget.characters))
    return sorted(picked, key=lambda snippet: -snippet.score)


def _find_run(windows: Sequence[Span], scores: Scores, room: int) -> Span | None:
    """Return the run of free windows with the best mean, among the longest that are free and fit."""
    runs = (_best_run(windows, scores, size, room) for size in range(RUN_WINDOWS, 0, -1))
    return next((run for run in runs if run), None)


def _best_run(windows: Sequence[Span], scores: Scores, size: int, room: int) -> Span | None:
    if len(windows) < size:
        return None
    starts = np.array([window.start for window in windows[: len(windows) - size + 1]])
    ends = np.array([window.end for window in windows[size - 1 :]])
    # A run that holds NaN has none for its mean.
    means = np.lib.stride_tricks.sliding_window_view(scores, size).mean(axis=1)
    means[(ends - starts > room) | np.isnan(means)] = -np.inf
    best = int(means.argmax())
    return Span(best, best + size) if np.isfinite(means[best]) else None


def _cut_best(text: str, windows: Sequence[Span], scores: Scores, room: int) -> Snippet:
    """Cut the best window to what fits."""
    best = int(np.nanargmax(scores))
    start = windows[best].start
    cut = Span(start, find_break(text, Span(start + room // 2, start + room)))
    span = cut.trim(text) or Span(start, start + 1)
    return Snippet(span.of(text), span, float(scores[best]))
