"""The legs of a query over one view: words, vectors, and exact terms. What they find is named by slot."""

from collections.abc import Sequence

import numpy as np

from indexing.embedding.embedder import Vector
from indexing.index.hybrid_ranking import ExactMatch, is_too_common
from indexing.index.protocols import IndexQuery
from indexing.local import tantivy_index, vector_file
from indexing.local.access_filter import Scope
from indexing.local.row_mapping import Door
from indexing.local.snapshot import View
from indexing.local.tantivy_index import Condition, Matches
from indexing.text import tokenizer

CHECKED = 100
"""Candidates of the exact leg whose text is read: twice as many as a query usually asks for."""


def keyword(view: View, scope: Scope, words: Sequence[str], wanted: int) -> dict[int, float]:
    """Raw BM25 of the best candidates."""
    if not words:
        return {}
    found = _seen(view, scope, tantivy_index.any_word(words), wanted)
    return dict(zip(_slots(view, found), found.scores.tolist(), strict=True))


def nearest(
    view: View, scope: Scope, queries: Sequence[Vector], wanted: int
) -> list[dict[int, float]]:
    """For each query the raw cosine of the best candidates; one scan for all."""
    found = vector_file.nearest(view.vectors, np.array(queries), scope.slots, wanted)
    return [dict(zip(slots.tolist(), scores.tolist(), strict=True)) for slots, scores in found]


def exact(view: View, scope: Scope, query: IndexQuery, door: Door) -> dict[int, ExactMatch]:
    """How many of the query's exact terms the best candidates hold."""
    terms = [term for term in query.exact if _tells_apart(view, term)]
    if not terms:
        return {}
    phrases = [tokenizer.exact_words(term) for term in terms]
    asked = tantivy_index.any_phrase(phrases, tokenizer.words(query.text))
    found = _seen(view, scope, asked, max(CHECKED, query.size))
    texts = door.texts(found.rows.tolist())
    held = [
        sum(tokenizer.holds(texts[row], term) for term in terms) if row in texts else 0
        for row in found.rows.tolist()
    ]
    return {
        slot: ExactMatch(count, score)
        for slot, count, score in zip(_slots(view, found), held, found.scores.tolist(), strict=True)
        if count
    }


def _tells_apart(view: View, term: str) -> bool:
    plain = tokenizer.exact_words(term)
    if not plain:
        return False
    if term not in tokenizer.exact_terms(term):
        return True  # Nothing about the term itself is code-like, so it was quoted.
    if not is_too_common(
        tantivy_index.rarest(view.searcher, tokenizer.words(term), plain), view.state.chunks
    ):
        return True
    return not is_too_common(tantivy_index.holders(view.searcher, plain), view.state.chunks)


def _seen(view: View, scope: Scope, query: Condition, wanted: int) -> Matches:
    """The best matches in the view. More are asked for to make up for what is not (or no more) in it."""
    limit = wanted
    while True:
        found = tantivy_index.search(view.searcher, query, scope.conditions, limit)
        fits = view.columns.seen(found.rows, found.documents)
        fits[fits] = scope.documents[found.documents[fits]]
        if len(found.rows) < limit or int(fits.sum()) >= wanted:
            return Matches(
                found.rows[fits][:wanted],
                found.documents[fits][:wanted],
                found.scores[fits][:wanted],
            )
        limit *= 4


def _slots(view: View, found: Matches) -> list[int]:
    slots: list[int] = view.columns.slots(found.rows, found.documents).tolist()
    return slots
