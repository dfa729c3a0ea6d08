"""The tasks of a research run."""

from dataclasses import dataclass, replace

MAX_TASKS = 6
"""Of a plan."""
LONGEST_QUESTION = 500
"""Characters of the question of a task."""


@dataclass(frozen=True, slots=True)
class ResearchTask:
    """A sub-question that one agent works on."""

    number: int
    """Unique within the run, from 1."""
    question: str
    round: int = 0
    """0: of the plan; from 1: what the orchestrator asked for after it had read reports."""
    rests_on: tuple[str, ...] = ()
    """Ids of documents that had been read before the question was written: it may say something of them."""


@dataclass(frozen=True, slots=True)
class ResearchPlan:
    """May be edited until the first task starts: only its questions count then."""

    tasks: tuple[ResearchTask, ...]
    rests_on: tuple[str, ...] = ()
    """Ids of documents that earlier findings rest on which it was made with: each of its questions may say something of them."""
    private_text: str = ""
    """What these findings say that not everybody may read: queries of the web are kept free of it."""

    @classmethod
    def of_questions(
        cls, questions: "tuple[str, ...] | list[str]", rests_on: tuple[str, ...] = ()
    ) -> "ResearchPlan":
        """Make a plan of sub-questions; each once, the first `MAX_TASKS`.

        Raises:
            ValueError: there is no question among them.
        """
        lines = [" ".join(question.split())[:LONGEST_QUESTION] for question in questions]
        distinct = {line.casefold(): line for line in reversed(lines) if line}
        kept = [line for line in lines if distinct.pop(line.casefold(), None)]
        if not kept:
            raise ValueError("a plan has one question at least")
        tasks = [
            ResearchTask(at, line, rests_on=rests_on) for at, line in enumerate(kept[:MAX_TASKS], 1)
        ]
        return cls(tuple(tasks), rests_on)

    def with_questions(self, questions: "tuple[str, ...] | list[str]") -> "ResearchPlan":
        """Return the plan as a person has edited it, who has seen what it rests on. Raises as `of_questions`."""
        changed = self.of_questions(questions, self.rests_on)
        return replace(changed, private_text=self.private_text)
