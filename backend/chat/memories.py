"""Choose what of a person's memories a question is answered with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import regex

from backend.chat.text_nearness import SentenceModel, find_nearness, sort_places
from backend.search.word_scores import score_by_words
from backend.store.chat.memories import Memory
from indexing.embedding.language_support import NO_FLOOR
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import extract_keywords, words

MOST_CHOSEN = 10
MOST_EMBEDDED = 128
"""Memories for one question: of more, those that are nearest by their words, then the newest."""
SHARED_WORD_SHARE = 1 / 3
"""Of the floor of the embedder, what the cosine of a memory has to be that shares a word with the question."""
FEWEST_LETTERS = 2
"""Of a word that shows what a memory is about."""

_ABOUT_ANSWERS = regex.compile(
    r"\b(?:answers?|answered|repl(?:y|ies)|respond|responses?|explanations?|call me|antworte?\w*|nenn mich|réponses?|réponds|répondez|respuestas?"
    r"|responde|rispost[ae]|rispondi|resposta|antwoord\w*)\b|回答|答复|回复|称呼|叫我|答えて|回答|返事|呼んで",
    regex.IGNORECASE,
)
"""What somebody writes who says how to be answered."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A memory beside a question; `cosine` is None where they were compared by their words alone."""

    memory: Memory
    by_words: float
    shares_word: bool
    cosine: float | None = None

    @property
    def nearness(self) -> float:
        return self.by_words if self.cosine is None else self.cosine

    def is_relevant(self, floor: float) -> bool:
        """Return whether a question is answered with it; `floor` is the cosine that unrelated texts hardly reach."""
        if _ABOUT_ANSWERS.search(self.memory.text):
            return True
        if self.cosine is None or floor == NO_FLOOR:
            return self.shares_word
        return self.cosine >= (floor * SHARED_WORD_SHARE if self.shares_word else floor)


def choose_memories(
    memories: Sequence[Memory],
    question: str,
    model: SentenceModel,
    limit: int,
    deadline: Deadline,
) -> list[Memory]:
    """Return the memories to answer a question with, the nearest first: those that are about it, or about how to answer.

    What is chosen counts as what the answer rests on, so that an unrelated one would keep others from reading it. Where
    the embedder does not understand the languages, fails or is late, they are compared by their words: no error of it ends
    a turn. Equally near ones keep their order.

    Args:
        memories: of the asker, the newest first.
        limit: the most that are returned, and no more than `MOST_CHOSEN`.
    """
    compared = _compare_all(memories, question, model, deadline)
    relevant = [one for one in compared if one.is_relevant(model.understanding.floor)]
    nearest = sorted(relevant, key=lambda one: -one.nearness)
    return [one.memory for one in nearest[: min(limit, MOST_CHOSEN)]]


def _compare_all(
    memories: Sequence[Memory], question: str, model: SentenceModel, deadline: Deadline
) -> list[_Compared]:
    by_words = score_by_words([memory.text for memory in memories], question)
    asked = _list_words(extract_keywords(question))
    compared = [
        _Compared(
            memories[place], float(by_words[place]), bool(asked & _list_words(memories[place].text))
        )
        for place in sort_places(by_words)[:MOST_EMBEDDED]
    ]
    cosines = find_nearness([one.memory.text for one in compared], question, model, deadline)
    if cosines is None:
        return compared
    return [
        replace(one, cosine=float(cosine)) for one, cosine in zip(compared, cosines, strict=True)
    ]


def _list_words(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if len(word) >= FEWEST_LETTERS)
