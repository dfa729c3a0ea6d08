"""A research run of this process, which asks back at the terminal. It is stored: where the process is killed, `quarry serve` goes on with it."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import typer
from rich.console import Console

from backend.chat.readable_ids import make_own_memories
from backend.cli import command_line
from backend.cli.local_research_workers import OWNER, make_stepper
from backend.cli.research_output import list_lines
from backend.composition.research import ResearchParts
from backend.conversations.turn_events import EncodedEvent
from backend.research.events import ResearchEvent
from backend.research.record.final_report import FinalReport
from backend.research.record.plan import ResearchPlan
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.runs.research_workers import claim_run
from backend.research.runs.run_journal import RunJournal
from backend.research.runs.run_steps import RunRights, work_on
from backend.research.runs.service import encode_stop
from backend.schemas.research_events import encode_research_event
from backend.store.chat.shared_files import NO_HOLDERS, FileHolders
from backend.store.database import Database
from backend.store.research import research_runs
from backend.store.research.research_leases import ClaimedResearch
from backend.store.research.research_runs import NewResearch, PersonChange, RecordedRun
from connectors.access import Readers
from connectors.errors import InvalidInputError, NotFoundError

_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class TerminalResearch:
    parts: ResearchParts
    resolve_readers: Callable[[], Readers]
    """Of whoever is at the terminal, also where there are accounts."""
    console: Console = field(default_factory=lambda: command_line.console(sys.stderr))
    holders: FileHolders = NO_HOLDERS
    """The assistant and the project of the run."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def carry_out(self, request: ResearchRequest, own: Readers, asks: bool) -> FinalReport:
        """Return the report. Raises NotFoundError: there is none; says why.

        Args:
            own: what whoever is at the terminal holds by itself.
            asks: whether questions back and the plan wait for an answer.
        """
        new = NewResearch(
            owner=OWNER,
            acting_as=sorted(own.tokens),
            conversation_id=None,
            project_id=self.holders.project_id,
            assistant_id=self.holders.assistant_id,
            question=request.question,
            confirms_plan=asks,
            record=write_record(ResearchRecord(request=request)),
            history_document_ids=(),
        )
        with self._database.transaction() as database:
            run_id = research_runs.add(database, new, datetime.now(UTC))
            claimed = claim_run(database, run_id)
        try:
            return self._follow(run_id, claimed)
        except KeyboardInterrupt:
            now = datetime.now(UTC)
            research_runs.stop(self._database, OWNER, run_id, encode_stop, now)
            raise

    @property
    def _database(self) -> Database:
        return self.parts.database

    def _follow(self, run_id: str, claimed: ClaimedResearch | None) -> FinalReport:
        while True:
            if claimed is not None:
                self._work_on(claimed)
            found = research_runs.get_own(self._database, OWNER, run_id)
            match found.run.state:
                case "clarifying" | "planned":
                    claimed = self._go_on(found, self._ask(found))
                case "done" | "stopped" | "failed":
                    return _get_report(found)
                case _:
                    # Another process has it, or had to end.
                    time.sleep(_LOOK_SECONDS)
                    claimed = claim_run(self._database, run_id)

    def _work_on(self, claimed: ClaimedResearch) -> None:
        journal = RunJournal(lambda: self._database, claimed, self._encode, lambda _: None)
        work_on(claimed, journal, make_stepper(self.parts, self._rights))

    @property
    def _rights(self) -> RunRights:
        return RunRights(
            readers_now=self.resolve_readers,
            own_memories=make_own_memories(self._database, None),
        )

    def _go_on(self, found: RecordedRun, record: ResearchRecord) -> ClaimedResearch | None:
        change = PersonChange(found.run.state, write_record(record), len(record.tasks))
        with self._database.transaction() as database:
            research_runs.queue(database, OWNER, found.run.id, change, datetime.now(UTC))
            return claim_run(database, found.run.id)

    def _ask(self, found: RecordedRun) -> ResearchRecord:
        record = read_record(found.record)
        if record.plan is not None:
            return _choose_tasks(record, record.plan)
        if record.clarification is None:
            raise ValueError("a run that waits for its person has a plan, or asks back")
        answer = typer.prompt("Your answer (empty to pass over it)", default="", err=True)
        said = replace(record.clarification, answer=str(answer).strip() or None)
        return replace(record, clarification=said)

    def _encode(self, event: ResearchEvent) -> EncodedEvent | None:
        with self._lock:
            for line in list_lines(event):
                self.console.print(command_line.to_safe_text(line, "dim"), soft_wrap=True)
        return encode_research_event(event)


def _choose_tasks(record: ResearchRecord, plan: ResearchPlan) -> ResearchRecord:
    """Leave out the tasks whose numbers are given. Raises InvalidInputError: none is left."""
    given = str(typer.prompt("Leave out (numbers; empty to start)", default="", err=True))
    numbers = {int(one) for one in given.replace(",", " ").split() if one.isdecimal()}
    kept = [task.question for task in plan.tasks if task.number not in numbers]
    if not kept:
        raise InvalidInputError("Every task was left out, so there is nothing to search for.")
    return replace(record, plan=plan.with_questions(kept))


def _get_report(found: RecordedRun) -> FinalReport:
    report = read_record(found.record).report
    if report is None:
        raise NotFoundError(found.run.problem or "There is no report.")
    return report
