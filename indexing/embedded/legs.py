"""The legs of a query over one view: words, vectors, and exact terms. What they find is named by slot."""

from collections.abc import Sequence

import numpy as np

from indexing import analysis
from indexing.embedded import fulltext, vectors
from indexing.embedded.fulltext import Condition, Matches
from indexing.embedded.rows import Door
from indexing.embedded.scope import Scope
from indexing.embedded.view import View
from indexing.embedding import Vector
from indexing.hybrid import ExactMatch, is_common
from indexing.index import IndexQuery

CHECKED = 100
"""Candidates of the exact leg whose text is read: twice as many as a query usually asks for."""


def keyword(view: View, scope: Scope, words: Sequence[str], wanted: int) -> dict[int, float]:
    """Raw BM25 of the best candidates."""
    if not words:
        return {}
    found = _seen(view, scope, fulltext.any_word(words), wanted)
    return dict(zip(_slots(view, found), found.scores.tolist(), strict=True))


def nearest(
    view: View, scope: Scope, queries: Sequence[Vector], wanted: int
) -> list[dict[int, float]]:
    """For each query the raw cosine of the best candidates; one scan for all."""
    found = vectors.nearest(view.vectors, np.array(queries), scope.slots, wanted)
    return [dict(zip(slots.tolist(), scores.tolist(), strict=True)) for slots, scores in found]


def exact(view: View, scope: Scope, query: IndexQuery, door: Door) -> dict[int, ExactMatch]:
    """How many of the query's exact terms the best candidates hold."""
    terms = [term for term in query.exact if _tells_apart(view, term)]
    if not terms:
        return {}
    phrases = [analysis.exact_words(term) for term in terms]
    asked = fulltext.any_phrase(phrases, analysis.words(query.text))
    found = _seen(view, scope, asked, max(CHECKED, query.size))
    texts = door.texts(found.rows.tolist())
    held = [
        sum(analysis.holds(texts[row], term) for term in terms) if row in texts else 0
        for row in found.rows.tolist()
    ]
    return {
        slot: ExactMatch(count, score)
        for slot, count, score in zip(_slots(view, found), held, found.scores.tolist(), strict=True)
        if count
    }


def _tells_apart(view: View, term: str) -> bool:
    plain = analysis.exact_words(term)
    if not plain:
        return False
    if term not in analysis.exact_terms(term):
        return True  # Nothing about the term itself is code-like, so it was quoted.
    if not is_common(
        fulltext.rarest(view.searcher, analysis.words(term), plain), view.state.chunks
    ):
        return True
    return not is_common(fulltext.holders(view.searcher, plain), view.state.chunks)


def _seen(view: View, scope: Scope, query: Condition, wanted: int) -> Matches:
    """The best matches in the view. More are asked for to make up for what is not (or no more) in it."""
    limit = wanted
    while True:
        found = fulltext.search(view.searcher, query, scope.conditions, limit)
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
