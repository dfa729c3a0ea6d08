"""What research found out before, for a run: looked up before anything is searched, and named where it is used."""

from collections.abc import Iterable, Sequence

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.events import SEARCH_ERRORS
from backend.chat.readable_ids import (
    find_readable,
    is_memory_reference,
    make_research_reference,
)
from backend.chat.turn_settings import AssistantSettings
from backend.research.dependencies import ResearchDependencies
from backend.research.events import UsedFinding
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.sources import NumberedSource, SourceText
from backend.search.llm_protocol import CompletionError
from backend.web_search.domains import ANY_DOMAIN
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline

FINDING_SECONDS = 5.0
SHOWN_CHARACTERS = 2_000
"""Of an answer, to the model that plans or decides; a report is written with all of it."""
NOT_FOUND = "What was found earlier could not be looked up."


def find_earlier_findings(
    question: str,
    record: ResearchRecord,
    readers: Readers,
    assistant: AssistantSettings,
    dependencies: ResearchDependencies,
    deadline: Deadline,
) -> Sequence[EarlierFinding]:
    """Return what speaks to a question and is not stale.

    Where a part of the documents or of the web is searched there is none, because findings rest on the rest too; nor one that rests
    on a memory, which only its person may read.

    Raises:
        CompletionError: they could not be looked up.
    """
    if dependencies.find_earlier is None or _is_narrowed(record.request, assistant):
        return ()
    limit = deadline.limited_to(FINDING_SECONDS)
    found = dependencies.find_earlier(question, readers, limit)
    return [one for one in found if not any(map(is_memory_reference, one.document_ids))]


def _is_narrowed(request: ResearchRequest, assistant: AssistantSettings) -> bool:
    searches_all = request.uses_documents and assistant.searches
    of_documents = request.filters != Filters() or assistant.scope != Filters()
    return not searches_all or of_documents or assistant.domains != ANY_DOMAIN


def list_documents(findings: Iterable[EarlierFinding]) -> tuple[str, ...]:
    """Return the ids of all documents that findings rest on."""
    return tuple(sorted(frozenset[str]().union(*(one.document_ids for one in findings))))


def list_used(findings: Iterable[EarlierFinding]) -> tuple[UsedFinding, ...]:
    return tuple(UsedFinding(one.id, one.question, one.made_at) for one in findings)


def describe_finding(finding: EarlierFinding) -> dict[str, object]:
    """Describe a finding to a model, as JSON values."""
    return {
        "question": finding.question,
        "answer": finding.answer[:SHOWN_CHARACTERS],
        "found_on": finding.made_at.date().isoformat(),
        **({"in_part_from_pages_of_the_web": True} if finding.is_of_web else {}),
    }


def make_finding_source(finding: EarlierFinding, number: int) -> NumberedSource:
    """Return the source by which a report cites a finding; its id leads to its page."""
    return NumberedSource(
        number=number,
        kind=SourceKind.RESEARCH,
        document_id=make_research_reference(finding.id),
        title=finding.question,
        url="",
        date=finding.made_at,
        texts=(SourceText(finding.answer),),
        rests_on=tuple(sorted(finding.document_ids)),
    )


def find_for_plan(
    record: ResearchRecord, dependencies: ResearchDependencies, deadline: Deadline
) -> Sequence[EarlierFinding]:
    """Return what speaks to the question of the person, and rests on what everybody may read.

    All tasks of a plan rest on what it was made with: one private finding would hide the whole run from others in its project. The
    agents find private ones by themselves. None where nobody asks, or it cannot be looked up.
    """
    readers = dependencies.resolve_readers()
    assistant = None if readers is None else dependencies.resolve_assistant(readers)
    if readers is None or assistant is None:
        return ()
    question = record.request.question
    try:
        found = find_earlier_findings(question, record, readers, assistant, dependencies, deadline)
        return _select_public(found, dependencies, deadline)
    except (CompletionError, *SEARCH_ERRORS):
        return ()


def _select_public(
    findings: Sequence[EarlierFinding], dependencies: ResearchDependencies, deadline: Deadline
) -> Sequence[EarlierFinding]:
    named, index = list_documents(findings), dependencies.index
    limit = deadline.limited_to(FINDING_SECONDS)
    public = find_readable(named, index, Readers.of(), lambda _: frozenset(), limit)
    return [one for one in findings if one.document_ids <= public]
