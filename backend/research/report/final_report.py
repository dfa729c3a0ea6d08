"""Write the final report of a run from the reports of its tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.citation_utils import collapse_citations
from backend.research import prompts
from backend.research.dependencies import ResearchFailedError
from backend.research.model_calls import ModelCalls
from backend.research.planning import describe_question
from backend.research.record.final_report import (
    Contradiction,
    FinalReport,
    ReportCounts,
    SourceStatement,
)
from backend.research.record.research_record import ResearchRecord
from backend.research.record.sources import NumberedSource
from backend.research.references.cited_text import CitedText, keep_markers
from backend.research.report.claim_checker import ClaimChecker
from backend.research.report.contradictions import find_contradictions
from backend.research.report.merged_reports import (
    MergedReports,
    merge_reports,
    write_reports_themselves,
)
from backend.research.report.report_checks import (
    CheckedContradictions,
    CheckedText,
    check_contradictions,
    check_report,
)
from backend.research.report.report_markdown import write_markdown
from backend.research.report.report_texts import TEXTS
from backend.research.run_assistant import read_instructions
from backend.research.run_problem import ASK_AGAIN, NOT_BEGUN, describe_problem
from backend.search.futures import run_in_background
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.search.prompts import strip_reasoning
from backend.search.sections import to_json
from indexing.runtime.deadline import Deadline

WRITING_SHARE = 0.6
"""Of the time for the report; the rest is for its checks."""
NOT_WRITTEN = "The language model did not write this report: it puts together those of the tasks."
NO_SOURCES = "It named no source."


def generate_final_report(
    record: ResearchRecord, calls: ModelCalls, notes: Sequence[str], deadline: Deadline
) -> FinalReport:
    """Return the report with all its citations checked.

    Raises:
        ResearchFailedError: no task has anything to report.
    """
    merged = merge_reports(record.written_reports)
    if not merged.reports:
        raise ResearchFailedError(describe_problem(record), ASK_AGAIN)
    order = _ReportOrder(record, merged, calls, deadline)
    searched = run_in_background(order.find_contradictions, deadline)
    written, failure = order.write()
    try:
        found = searched.result()
    except CompletionError:
        found = ()
    draft = order.check(written, found)
    why = [NOT_WRITTEN, failure] if failure else []
    return _finish(record, draft, [*notes, *why, *_list_notes(merged)])


@dataclass(frozen=True, slots=True)
class _Draft:
    """A checked report in the numbering of the merged reports."""

    checked: CheckedText
    disagreements: CheckedContradictions
    sources: Mapping[int, NumberedSource]


@dataclass(frozen=True, slots=True)
class _ReportOrder:
    record: ResearchRecord
    merged: MergedReports
    calls: ModelCalls
    deadline: Deadline

    def find_contradictions(self) -> tuple[Contradiction, ...]:
        today = self.record.request.today
        return find_contradictions(self.merged, self.calls, today, self.deadline)

    def write(self) -> tuple[CitedText, str]:
        """Return the text, and why it is not the model's where it is not."""
        seconds = self.deadline.remaining() * WRITING_SHARE
        try:
            answer = self.calls.write(self._compose(), self.deadline.limited_to(seconds))
        except CompletionError as error:
            return self._keep(write_reports_themselves(self.merged.reports)), str(error)
        written = self._keep(strip_reasoning(answer))
        if written.seen:
            return written, ""
        return self._keep(write_reports_themselves(self.merged.reports)), NO_SOURCES

    def check(self, written: CitedText, found: Sequence[Contradiction]) -> _Draft:
        marks = TEXTS[self.record.request.language].marks
        checker = ClaimChecker(self.merged.sources, self.calls, self.deadline)
        disagreements = check_contradictions(found, checker)
        return _Draft(check_report(written, checker, marks), disagreements, self.merged.sources)

    def _compose(self) -> list[ChatMessage]:
        count_tokens = self.calls.dependencies.count_tokens
        values = {**describe_question(self.record), "not_found": list(list_not_found(self.record))}
        instructions = read_instructions(self.calls.dependencies)
        room = self.calls.room - count_tokens(to_json(values)) - count_tokens(instructions)
        described = self.merged.describe(room, count_tokens)
        return prompts.quote(
            prompts.FINAL_REPORT,
            {**values, **described},
            self.record.request.today,
            instructions,
        )

    def _keep(self, text: str) -> CitedText:
        return keep_markers(text, self.merged.mapping)


def _finish(record: ResearchRecord, draft: _Draft, notes: Iterable[str]) -> FinalReport:
    """Number the sources by their first citation: in the text, and then in the contradictions."""
    mapping = {number: one.cited_document for number, one in draft.sources.items()}
    collapsed = collapse_citations(draft.checked.text, mapping)
    numbers = _renumber(draft, collapsed.mapping)
    sources = {new: replace(draft.sources[old], number=new) for old, new in numbers.items()}
    checked, disagreements = draft.checked, draft.disagreements
    citations = [*checked.citations, *disagreements.citations]
    report = FinalReport(
        markdown="",
        text=collapsed.text,
        sources=tuple(sources[number] for number in sorted(sources)),
        citations=tuple(replace(one, number=numbers[one.number]) for one in citations),
        counts=ReportCounts.of(
            checked.sentences + len(disagreements.citations), checked.uncited, citations
        ),
        not_found=tuple(list_not_found(record)),
        contradictions=tuple(_renumber_statements(disagreements.contradictions, numbers)),
        documents=tuple(sorted(record.documents)),
        notes=tuple(dict.fromkeys(filter(None, notes))),
    )
    return replace(report, markdown=write_markdown(report, record.request.language))


def _renumber(draft: _Draft, cited: Mapping[int, CitedDocument]) -> dict[int, int]:
    """Return the new numbers of sources by their old ones: of those of the text, then of those of the contradictions."""
    by_document = {document.document_id: number for number, document in cited.items()}
    for one in draft.disagreements.citations:
        document = draft.sources[one.number].document_id
        by_document.setdefault(document, len(by_document) + 1)
    ids = {number: one.document_id for number, one in draft.sources.items()}
    return {old: by_document[one] for old, one in ids.items() if one in by_document}


def _renumber_statements(
    contradictions: Iterable[Contradiction], numbers: Mapping[int, int]
) -> Iterator[Contradiction]:
    for one in contradictions:
        said = tuple(SourceStatement(numbers[each.number], each.says) for each in one.statements)
        yield replace(one, statements=said)


def list_not_found(record: ResearchRecord) -> Iterator[str]:
    """Yield the questions that nothing was found of, each with why where that is known."""
    answered = {one.task.question.casefold() for one in record.written_reports}
    for report in record.reports:
        if report.failure:
            yield f"{report.task.question} {report.failure}"
        yield from (gap for gap in report.gaps if gap.casefold() not in answered)
    for task in record.pending_tasks:
        yield f"{task.question} {NOT_BEGUN}"


def _list_notes(merged: MergedReports) -> Iterator[str]:
    for one in merged.reports:
        if one.note:
            yield f"{one.question} {one.note}"
