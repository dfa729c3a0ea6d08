"""Research runs in a database, worked on by nobody: what they found is what a test says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from backend.chat.citations.citation_processor import SourceKind
from backend.research.events import (
    ActionDone,
    ActionKind,
    IntermediateReportCitedDocs,
    PlanMade,
    ReportChecked,
    ReportPiece,
    ResearchDone,
    ResearchEvent,
    RoundDecided,
    SourceFound,
    TaskDone,
    TaskStarted,
)
from backend.research.record.final_report import FinalReport, ReportCounts
from backend.research.record.plan import ResearchPlan, ResearchTask
from backend.research.record.record_json import write_record
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.sources import NumberedSource
from backend.research.record.task_report import TaskReport
from backend.research.runs.run_events import encode_state
from backend.research.runs.run_journal import LeftRun, RunJournal
from backend.schemas.research_events import encode_research_event
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import research_leases, research_runs
from backend.store.research.research_leases import ClaimedResearch
from backend.store.research.research_runs import NewResearch
from backend.sync.run_lease import is_dead
from tests.support.conversations import ELSEWHERE

SENTENCES = 471_147_114_711
"""That each report is said to have."""


def add_run(
    database: Database,
    owner: ConversationOwner,
    *,
    project_id: str | None = None,
    history: Sequence[str] = (),
) -> str:
    record = ResearchRecord(request=ResearchRequest(question="How long is leave?"))
    new = NewResearch(
        owner=owner,
        acting_as=("public",),
        conversation_id=None,
        project_id=project_id,
        question="How long is leave?",
        confirms_plan=False,
        record=write_record(record),
        history_document_ids=history,
    )
    return research_runs.add(database, new, datetime.now(UTC))


def claim(database: Database, run_id: str) -> ClaimedResearch:
    now = datetime.now(UTC)
    claimed = research_leases.claim(database, run_id, ELSEWHERE, is_dead, now)
    assert claimed
    return claimed


def open_journal(database: Database, claimed: ClaimedResearch) -> RunJournal:
    return RunJournal(lambda: database, claimed, encode_research_event, lambda _: None)


def finish_run(
    database: Database, run_id: str, rounds: Sequence[Mapping[str, str]]
) -> ResearchRecord:
    """End a run with a report of everything. Each round has tasks: each task reads one document, and tells what it says.

    Args:
        rounds: what each document says.
    """
    journal = open_journal(database, claim(database, run_id))
    record = ResearchRecord(request=ResearchRequest(question="How long is leave?"))
    for facts in rounds:
        if record.plan is None:
            plan = ResearchPlan.of_questions([f"What is in {one}?" for one in facts])
            record = record.with_plan(plan)
            journal.emit(PlanMade(plan))
        else:
            known = sorted(said for one in record.reports for said in [one.text])
            record = record.with_round([f"Given {known}, what is in {one}?" for one in facts])
            documents = tuple(sorted(record.documents))
            journal.emit(
                RoundDecided(record.rounds, record.pending_tasks, f"Read: {known}", documents)
            )
        for task, (document, said) in zip(record.pending_tasks, facts.items(), strict=True):
            report = _report(task, document, said)
            for event in _list_events(report, said):
                journal.emit(event)
            record = record.with_report(report)
            journal.save(record)
    return _end(journal, record)


def _report(task: ResearchTask, document: str, said: str) -> TaskReport:
    source = NumberedSource(
        number=1, kind=SourceKind.DOCUMENT, document_id=document, title=said, url=""
    )
    documents = tuple(sorted({document, *task.rests_on}))
    return TaskReport(task=task, text=f"{said} [1].", sources=(source,), documents=documents)


def _list_events(report: TaskReport, said: str) -> list[ResearchEvent]:
    number, documents = report.task.number, report.documents
    done = ActionDone(
        task=number,
        step=1,
        action=ActionKind.SEARCH,
        brought=1,
        notes=(said,),
        documents=documents,
    )
    return [
        TaskStarted(report.task),
        SourceFound(number, report.sources[0]),
        done,
        IntermediateReportCitedDocs(number, report.sources),
        TaskDone(report),
    ]


def _end(journal: RunJournal, record: ResearchRecord) -> ResearchRecord:
    text = "\n\n".join(f"## {one.task.question}\n\n{one.text}" for one in record.reports)
    documents = tuple(sorted(record.documents))
    counts = ReportCounts(sentences=SENTENCES)
    report = FinalReport(markdown=text, text=text, documents=documents, counts=counts)
    ended = replace(record, report=report, is_searched=True)
    journal.emit(ReportChecked(counts, documents))
    journal.emit(ReportPiece(text, documents))
    journal.emit(ResearchDone(report))
    journal.leave(ended, LeftRun("done", None, encode_state("done")))
    return ended
