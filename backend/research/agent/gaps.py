"""The questions of an agent: that of its task, and those that came up on the way, worked on in turn."""

from collections.abc import Iterable

MAX_OPEN = 4
MAX_ASKED = 8
"""In a task, its own question included."""


class Gaps:
    def __init__(self, question: str) -> None:
        self._main = question
        self._open = [question]
        self._asked = {to_key(question)}

    @property
    def current(self) -> str:
        return self._open[0]

    @property
    def is_main(self) -> bool:
        return self.current == self._main

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Without the question of the task."""
        return tuple(one for one in self._open if one != self._main)

    @property
    def may_grow(self) -> bool:
        return len(self._open) < MAX_OPEN and len(self._asked) < MAX_ASKED

    def add(self, questions: Iterable[str]) -> int:
        """Add those that were not asked before, as far as there is room, and return how many."""
        added = 0
        for question in questions:
            key = to_key(question)
            if key and key not in self._asked and self.may_grow:
                self._asked.add(key)
                self._open.append(question)
                added += 1
        return added

    def close(self) -> None:
        """Drop the current question, which is answered."""
        self._open.pop(0)

    def turn(self) -> None:
        """Work on the next one."""
        self._open.append(self._open.pop(0))


def to_key(question: str) -> str:
    """Return by what questions are compared: without case, and without what ends them."""
    return " ".join(question.casefold().split()).rstrip(" ?.!？。！")
