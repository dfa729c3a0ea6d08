"""Place what inferred filters accept first, where it is about as close to the query as what was found without them.

A filter that was read wrongly must not hide the answer: everything else follows, and what merely passes the filter, but has
little to do with the query, keeps its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.search.models import FilterKind, Inference, InferredFilter
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Evidence, Hit
from indexing.text.tokenizer import plain_words, words

CLOSE = 0.75
"""Share of the best evidence, of words or of the vector, that is as close."""


@dataclass(frozen=True, slots=True)
class PreferredHits:
    hits: list[Hit]
    """Best first."""
    applied: tuple[InferredFilter, ...] = ()
    """The filters; none where nothing that they accept is close enough."""


def place_matching_first(
    found: Sequence[Hit], matching: Sequence[Hit], message: str, inference: Inference
) -> PreferredHits:
    """Join two rankings of the same query, without and with the inferred filters.

    Where these are dates, what names the time is placed as what was changed then. Chunks with more of the exact terms stay
    above those with fewer.

    Args:
        found: by the whole message.
        matching: by its topic, among what the filters accept.
    """
    best = _best_evidence(found, _topic_share(message, inference))
    close = [hit for hit in matching if not inference.topic or _is_close(hit.evidence, best)]
    if not close:
        return PreferredHits([*found])
    naming = [hit for hit in found if _names_the_time(hit.chunk, inference)]
    preferred = _merge_by_place(close, naming, found)
    others = _without([*found, *matching], preferred)
    hits = sorted([*preferred, *others], key=lambda hit: -hit.evidence.exact)
    return PreferredHits(hits, inference.inferred)


def _topic_share(message: str, inference: Inference) -> float:
    """Return what share of the words of a message its topic has."""
    topic, whole = set(words(inference.topic)), set(words(message))
    return len(topic) / len(whole) if topic and whole else 1.0


def _best_evidence(hits: Sequence[Hit], topic_share: float) -> tuple[float, float]:
    """Return the largest share of words, as if all that are held were of the topic, and the largest cosine."""
    share = max((hit.evidence.word_share for hit in hits), default=0.0) / topic_share
    cosine = max((hit.evidence.cosine or 0.0 for hit in hits), default=0.0)
    return min(1.0, share), cosine


def _is_close(evidence: Evidence, best: tuple[float, float]) -> bool:
    share, cosine = best
    by_words = 0.0 < evidence.word_share >= CLOSE * share
    return by_words or 0.0 < (evidence.cosine or 0.0) >= CLOSE * cosine


def _names_the_time(chunk: Chunk, inference: Inference) -> bool:
    if any(one.kind is not FilterKind.DATE or not one.date_names for one in inference.inferred):
        return False
    names = frozenset().union(*(one.date_names for one in inference.inferred))
    return names <= frozenset(plain_words(chunk.embedded_text))


def _merge_by_place(close: Sequence[Hit], naming: Sequence[Hit], found: Sequence[Hit]) -> list[Hit]:
    """Order by the better of the two places, in the ranking with the filters and in the one without."""
    places = {hit.chunk.key: place for place, hit in enumerate(found)}
    placed = [
        (min(place, places.get(hit.chunk.key, place)), hit) for place, hit in enumerate(close)
    ]
    passed = {hit.chunk.key for hit in close}
    placed += [(places[hit.chunk.key], hit) for hit in naming if hit.chunk.key not in passed]
    return [hit for _, hit in sorted(placed, key=lambda each: each[0])]


def _without(hits: Sequence[Hit], preferred: Sequence[Hit]) -> list[Hit]:
    """Return each chunk once that is not among the preferred."""
    placed = {hit.chunk.key for hit in preferred}
    others: dict[tuple[str, int], Hit] = {}
    for hit in hits:
        if hit.chunk.key not in placed:
            others.setdefault(hit.chunk.key, hit)
    return list(others.values())
