"""Research runs of one asker: started, planned with them, read, stopped and deleted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from backend.conversations.answer_gate import WITHHELD, AnswerGate
from backend.conversations.followed_turn import WithheldError
from backend.conversations.history import make_history
from backend.research.record.final_report import FinalReport
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import PastMessage, ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.report.report_markdown import export_markdown
from backend.research.run_problem import remove_agent_notes
from backend.research.runs.past_messages import make_past_messages
from backend.research.runs.run_events import DocumentedEvent, encode_portion, encode_state
from backend.research.runs.run_gate import list_documents, show_record
from backend.store.chat import conversations, messages
from backend.store.chat.conversations import Conversation, ListPosition
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import research_leases, research_runs
from backend.store.research.research_runs import (
    NewResearch,
    PersonChange,
    RecordedRun,
    ResearchRun,
    ResearchState,
)
from backend.sync.run_lease import is_dead
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

MOST_OPEN = 10
"""Runs of one person that have not ended."""
MOST_HISTORY = 20
"""Messages of the conversation before, the last ones."""
LONGEST_ANSWER = 4_000
"""Characters of what a person says to questions back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchOrder:
    """What somebody wants researched, and where it belongs."""

    request: ResearchRequest
    confirms_plan: bool = True
    """Whether questions back and the plan wait for the person."""
    conversation_id: str | None = None
    project_id: str | None = None
    assistant_id: str | None = None
    """That of the conversation where there is one; None for the default one."""


@dataclass(frozen=True, slots=True)
class OpenedResearch:
    """A run as its asker may see it."""

    run: ResearchRun
    record: ResearchRecord
    """What may be shown of it."""
    withheld: bool
    """Whether something is left out, because it rests on documents that the asker may not read."""
    withheld_tasks: frozenset[int]
    """The numbers of the tasks whose reports are."""
    place: int | None
    """Among those that wait for a process."""
    is_own: bool


@dataclass(frozen=True, slots=True)
class ResearchPage:
    runs: Sequence[ResearchRun]
    next: ListPosition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchService:
    database: Database
    owner: ConversationOwner
    """The person who asks."""
    gate: AnswerGate
    """By what the asker may read now."""
    acting_as: tuple[str, ...]
    """The reader tokens of the owner of the machine. The rights of people are resolved anew."""

    def begin(
        self, order: ResearchOrder, check_assistant: Callable[[str | None], object]
    ) -> OpenedResearch:
        """Begin a run, which goes on by itself.

        Args:
            check_assistant: given the id of an assistant, raises ConflictError where it is not for the asker any more.

        Raises:
            NotFoundError: there is no such conversation or project.
            ConflictError: too many of the asker's runs have not ended.
        """
        order, before = self._find_conversation(order)
        check_assistant(order.assistant_id)
        history, document_ids = self._read_history(before)
        record = ResearchRecord(request=replace(order.request, history=history))
        new = NewResearch(
            owner=self.owner,
            acting_as=self.acting_as if self.owner.person_id is None else None,
            conversation_id=order.conversation_id,
            project_id=order.project_id,
            assistant_id=order.assistant_id,
            question=order.request.question,
            confirms_plan=order.confirms_plan,
            record=write_record(record),
            history_document_ids=sorted(document_ids),
        )
        with self.database.transaction() as database:
            if research_runs.count_open(database, self.owner) >= MOST_OPEN:
                raise ConflictError(
                    f"{MOST_OPEN} of your research runs have not ended. Stop or delete one first."
                )
            run_id = research_runs.add(database, new, datetime.now(UTC))
        return self.open(run_id)

    def _find_conversation(self, order: ResearchOrder) -> tuple[ResearchOrder, Conversation | None]:
        """Return the conversation that research goes on from, whose assistant it has."""
        if order.conversation_id is None:
            return order, None
        found = conversations.get(self.database, self.owner, order.conversation_id)
        return replace(order, assistant_id=found.assistant_id), found

    def _read_history(
        self, before: Conversation | None
    ) -> tuple[tuple[PastMessage, ...], frozenset[str]]:
        """Return the messages of a conversation that may be read now, and the documents that they rest on."""
        if before is None or before.leaf_id is None:
            return (), frozenset()
        path = messages.list_path(self.database, before.leaf_id, MOST_HISTORY)
        made = make_history(path, self.gate)
        return make_past_messages(path, made), made.document_ids

    def list_page(
        self, project_id: str | None, before: ListPosition | None, limit: int
    ) -> ResearchPage:
        """Return one's own runs, or those of a project that one is in; the last changed one first."""
        listed = research_runs.list_page(self.database, self.owner, project_id, before, limit + 1)
        found = list(map(remove_agent_notes, listed))
        page = found[:limit]
        if len(found) <= limit:
            return ResearchPage(page, None)
        return ResearchPage(page, ListPosition(page[-1].updated_at, page[-1].id))

    def is_own(self, run: ResearchRun) -> bool:
        return run.owner == self.owner

    def find_place(self, run: ResearchRun) -> int | None:
        """Return the place of a run among those that wait for a process; None where it does not wait."""
        if run.state != "waiting":
            return None
        return research_leases.find_place(self.database, run.id, is_dead, datetime.now(UTC))

    def open(self, run_id: str) -> OpenedResearch:
        """Return a run as the asker may see it. Raises NotFoundError."""
        found = research_runs.get(self.database, self.owner, run_id)
        if self.is_own(found.run):
            research_runs.mark_opened(self.database, self.owner, run_id, datetime.now(UTC))
        return self._show(found)

    def _show(self, found: RecordedRun) -> OpenedResearch:
        run, record = found.run, read_record(found.record)
        history = run.history_document_ids
        readable = self.gate.find_readable(list_documents(record).union(history))
        shown = show_record(record, history, readable)
        return OpenedResearch(
            run=remove_agent_notes(run),
            record=shown.record,
            withheld=shown.withheld,
            withheld_tasks=shown.withheld_tasks,
            place=self.find_place(run),
            is_own=self.is_own(run),
        )

    def get_report(self, run_id: str) -> FinalReport:
        """Return the report of a run.

        Raises:
            NotFoundError: there is no such run, or no report of it.
            WithheldError: it rests on documents that the asker may not read.
        """
        return _find_report(self.open(run_id))

    def export_report(self, run_id: str) -> str:
        """Return the report of a run as a file of Markdown. Raises as `get_report`."""
        opened = self.open(run_id)
        return export_markdown(_find_report(opened), opened.record.request.language)

    def clarify(self, run_id: str, answer: str | None) -> OpenedResearch:
        """Say what was unclear of one's own question; None passes over the questions back.

        Raises:
            NotFoundError, InvalidInputError
            ConflictError: nothing is asked back now.
        """
        record = self._get_own(run_id, "clarifying")
        if record.clarification is None:
            raise ValueError("a run that asks back has a clarification")
        if answer is not None and not 0 < len(answer.strip()) <= LONGEST_ANSWER:
            raise InvalidInputError(f"Write at most {LONGEST_ANSWER} characters.")
        said = replace(record.clarification, answer=answer.strip() if answer else None)
        return self._queue(run_id, "clarifying", replace(record, clarification=said))

    def change_plan(self, run_id: str, questions: Sequence[str]) -> OpenedResearch:
        """Replace the tasks of one's own plan before it starts.

        Raises:
            NotFoundError
            ConflictError: it has started, or there is none yet.
            InvalidInputError: there is no question among them.
        """
        record = self._get_own(run_id, "planned")
        if record.plan is None:
            raise ValueError("a run that waits with its plan has one")
        try:
            changed = replace(record, plan=record.plan.with_questions(tuple(questions)))
        except ValueError as error:
            raise InvalidInputError("A plan has one question at least.") from error
        change = _make_change("planned", changed)
        research_runs.change_record(self.database, self.owner, run_id, change, datetime.now(UTC))
        return self.open(run_id)

    def start(self, run_id: str) -> OpenedResearch:
        """Let one's own plan be worked on. Raises as `change_plan`."""
        return self._queue(run_id, "planned", self._get_own(run_id, "planned"))

    def stop(self, run_id: str) -> OpenedResearch:
        """Let one's own run end with a report of what there is. What has ended stays as it is. Raises NotFoundError."""
        research_runs.stop(self.database, self.owner, run_id, encode_stop, datetime.now(UTC))
        return self.open(run_id)

    def delete(self, run_id: str) -> None:
        """Delete one's own run; what works on it ends within seconds. Raises NotFoundError."""
        research_runs.remove(self.database, self.owner, run_id)

    def _get_own(self, run_id: str, state: ResearchState) -> ResearchRecord:
        found = research_runs.get_own(self.database, self.owner, run_id)
        if found.run.state != state:
            raise ConflictError(f"This research is {found.run.state} by now.")
        return read_record(found.record)

    def _queue(self, run_id: str, state: ResearchState, record: ResearchRecord) -> OpenedResearch:
        change = _make_change(state, record)
        research_runs.queue(self.database, self.owner, run_id, change, datetime.now(UTC))
        return self.open(run_id)


def _find_report(opened: OpenedResearch) -> FinalReport:
    if opened.record.report is not None:
        return opened.record.report
    if opened.run.has_report:
        raise WithheldError(WITHHELD)
    raise NotFoundError("This research has no report.")


def _make_change(expected: ResearchState, record: ResearchRecord) -> PersonChange:
    return PersonChange(expected, write_record(record), len(record.tasks))


def encode_stop(number: int) -> str:
    """Return the portion that ends a run of which nothing was found yet."""
    event = encode_state("stopped", "It was stopped before anything was found.")
    return encode_portion(number, [DocumentedEvent(event)])
