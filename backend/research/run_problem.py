"""Why a run has no report, without anything that only some may read: a run shows it to all who see the run.

What an agent noted of its steps may repeat what documents say. It stays with the report of its task, which only those are shown who may
read what that rests on.
"""

from collections.abc import Iterable
from dataclasses import replace

from backend.research.agent.run_task import (
    ASKER_GONE,
    BUDGET_ENDED,
    NO_PLACE,
    NOTHING_FOUND,
    STOPPED,
    WITHDRAWN,
)
from backend.research.record.research_record import ResearchRecord
from backend.research.record.task_report import TaskReport
from backend.research.run_assistant import ASSISTANT_GONE
from backend.store.research.research_runs import ResearchRun

NOT_BEGUN = "It was not looked at before the research ended."
ASK_AGAIN = "Ask in other words, or ask later."
NOTHING_TO_REPORT = "There is nothing to report of."
_MOST_REASONS = 3
_OF_NO_SOURCE = (
    NOTHING_FOUND,
    STOPPED,
    BUDGET_ENDED,
    WITHDRAWN,
    NO_PLACE,
    ASKER_GONE,
    ASSISTANT_GONE,
    NOT_BEGUN,
)
"""Sentences that say nothing of any source."""


def describe_problem(record: ResearchRecord) -> str:
    """Return why there is nothing to report of."""
    rests_on_history = any(one.rests_on for one in record.request.history)
    failed = (one for one in record.reports if one.failure)
    said = dict.fromkeys(
        _select_known(one.failure) if rests_on_history or _has_origins(one) else one.failure
        for one in failed
    )
    return _join(list(filter(None, said))[:_MOST_REASONS] or [NOT_BEGUN])


def remove_agent_notes(run: ResearchRun) -> ResearchRun:
    """Leave out what former versions repeated of tasks that had read documents."""
    has_read = run.document_ids or run.history_document_ids
    if run.problem is None or not run.problem.startswith(NOTHING_TO_REPORT) or not has_read:
        return run
    return replace(run, problem=_join([_select_known(run.problem), ASK_AGAIN]))


def _has_origins(report: TaskReport) -> bool:
    return bool(report.documents or report.task.rests_on)


def _select_known(text: str) -> str:
    return " ".join(one for one in _OF_NO_SOURCE if one in text)


def _join(reasons: Iterable[str]) -> str:
    return " ".join(filter(None, (NOTHING_TO_REPORT, *reasons)))
