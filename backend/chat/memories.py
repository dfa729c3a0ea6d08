"""Choose what of a person's memories a question is answered with."""

from collections.abc import Sequence

from backend.chat.text_nearness import SentenceModel, find_nearness, sort_places
from backend.search.word_scores import score_by_words
from backend.store.memories import Memory
from indexing.runtime.deadline import Deadline

MOST_CHOSEN = 10
MOST_CHARACTERS = 2_000
"""Together, up to which few memories are all taken."""
MOST_EMBEDDED = 128
"""Memories for one question: of more, those that are nearest by their words, then the newest."""


def choose_memories(
    memories: Sequence[Memory],
    question: str,
    model: SentenceModel,
    limit: int,
    deadline: Deadline,
) -> list[Memory]:
    """Return the memories to answer a question with: all in their order where they are few and short, else the nearest, best first.

    Where the embedder does not understand the languages, fails or is late, they are compared by their words: no error
    of it ends a turn. Equally near ones keep their order.

    Args:
        memories: of the asker, the newest first.
        limit: the most that are returned, and no more than `MOST_CHOSEN`.
    """
    most = min(limit, MOST_CHOSEN)
    length = sum(len(memory.text) for memory in memories)
    if len(memories) <= most and length <= MOST_CHARACTERS:
        return list(memories)
    by_words = score_by_words([memory.text for memory in memories], question)
    candidates = [memories[place] for place in sort_places(by_words)[:MOST_EMBEDDED]]
    nearness = find_nearness([memory.text for memory in candidates], question, model, deadline)
    if nearness is None:
        return candidates[:most]
    return [candidates[place] for place in sort_places(nearness)[:most]]
