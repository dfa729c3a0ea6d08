"""What a research run may spend, and what it has spent."""

from dataclasses import dataclass

REPORT_SHARE = 0.1
"""Of tokens and time, held back for the report."""
CYCLES_PER_TASK = 8
PARALLEL_TASKS = 4
MOST_MINUTES = 30
"""That a person may give a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    tokens: int = 0
    """Sent to language models and received from them."""
    seconds: float = 0.0
    """In which the run was worked on."""
    cycles: int = 0
    """Steps of research agents."""
    pages: int = 0
    """Pages of the web that were asked for."""

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            tokens=self.tokens + other.tokens,
            seconds=self.seconds + other.seconds,
            cycles=self.cycles + other.cycles,
            pages=self.pages + other.pages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchBudget:
    """The most that a run may spend, all its agents and its report together."""

    tokens: int = 600_000
    seconds: float = 600.0
    cycles: int = 64
    pages: int = 48
    parallel_tasks: int = PARALLEL_TASKS
    """Agents that work at the same time."""

    def left_after(self, spent: Spent) -> "TaskBudget":
        """Return what agents may still spend together; what is held back for the report is no part of it."""
        agents = 1 - REPORT_SHARE
        return TaskBudget(
            tokens=max(0, int(self.tokens * agents) - spent.tokens),
            seconds=max(0.0, self.seconds * agents - spent.seconds),
            cycles=max(0, self.cycles - spent.cycles),
            pages=max(0, self.pages - spent.pages),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBudget:
    """The most that agents may spend."""

    tokens: int
    seconds: float
    cycles: int
    pages: int
    """0 where none is left; then pages are not opened."""

    @property
    def is_used_up(self) -> bool:
        return self.tokens <= 0 or self.seconds <= 0 or self.cycles <= 0

    def share(self, among: int) -> "TaskBudget":
        """Divide it into equal parts for agents that work side by side, each with the whole time."""
        among = max(1, among)
        return TaskBudget(
            tokens=self.tokens // among,
            seconds=self.seconds,
            cycles=min(CYCLES_PER_TASK, self.cycles // among),
            pages=self.pages // among,
        )
