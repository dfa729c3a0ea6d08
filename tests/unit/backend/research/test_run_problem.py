"""Why there is no report: who sees a run is told nothing of what only some may read."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from backend.conversations.answer_gate import AnswerGate
from backend.research.agent.run_task import NOTHING_FOUND
from backend.research.record.plan import ResearchPlan
from backend.research.record.request import PastMessage, ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.task_report import TaskReport
from backend.research.run_problem import (
    ASK_AGAIN,
    NOT_BEGUN,
    NOTHING_TO_REPORT,
    describe_problem,
    remove_agent_notes,
)
from backend.research.runs.run_events import encode_state
from backend.research.runs.run_journal import LeftRun
from backend.research.runs.service import ResearchService
from backend.store.database import Database, open_database
from connectors.access import Readers
from indexing.runtime.deadline import Deadline
from tests.support.conversations import OWNER
from tests.support.research_runs import add_run, claim, open_journal
from tests.support.search import MemoryIndex

NOTE = "The answer to “Why 40 EUR?” did not count. The price of 2025 is missing."
FAILURE = f"{NOTHING_FOUND} {NOTE}"


def make_failed(
    *documents: str, rests_on: tuple[str, ...] = (), history: tuple[PastMessage, ...] = ()
) -> ResearchRecord:
    plan = ResearchPlan.of_questions(["What does it cost?"], rests_on)
    (task,) = plan.tasks
    report = TaskReport(task=task, failure=FAILURE, documents=documents)
    request = ResearchRequest(question="What is the pump?", history=history)
    return ResearchRecord(request=request, plan=plan).with_report(report)


@pytest.mark.parametrize(
    "record",
    [
        make_failed("kb:price"),
        make_failed(rests_on=("kb:price",)),
        make_failed(history=(PastMessage("assistant", "40 EUR.", (), ("kb:price",)),)),
    ],
)
def test_what_was_noted_of_documents_is_not_repeated(record: ResearchRecord) -> None:
    assert describe_problem(record) == f"{NOTHING_TO_REPORT} {NOTHING_FOUND}"


def test_where_nothing_was_read_the_notes_say_why() -> None:
    """Such as that the language model is not reached."""
    assert describe_problem(make_failed()) == f"{NOTHING_TO_REPORT} {FAILURE}"


def test_a_run_without_tasks_that_ended_had_not_begun() -> None:
    record = ResearchRecord(request=ResearchRequest(question="What?"))
    assert describe_problem(record) == f"{NOTHING_TO_REPORT} {NOT_BEGUN}"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def test_what_a_former_version_stored_is_cut_where_it_is_read(database: Database) -> None:
    """In a list and on its own; other reasons, and those of runs that had read nothing, are as they are."""
    stored = f"{NOTHING_TO_REPORT} {FAILURE} {ASK_AGAIN}"
    run_id = add_run(database, OWNER, history=["kb:price"])
    journal = open_journal(database, claim(database, run_id))
    left = LeftRun("failed", stored, encode_state("failed", stored))
    journal.leave(make_failed("kb:price"), left)
    gate = AnswerGate(
        index=MemoryIndex(()),
        readers=Readers.of("public"),
        own_memories=lambda _: frozenset(),
        deadline=Deadline.after(60),
    )
    service = ResearchService(database=database, owner=OWNER, gate=gate, acting_as=())
    opened = service.open(run_id).run
    (listed,) = service.list_page(None, None, 10).runs
    assert opened.problem == listed.problem == f"{NOTHING_TO_REPORT} {NOTHING_FOUND} {ASK_AGAIN}"
    unread = replace(opened, problem=stored, history_document_ids=())
    assert remove_agent_notes(unread) == unread
    other = replace(opened, problem="The index does not answer.")
    assert remove_agent_notes(other) == other
