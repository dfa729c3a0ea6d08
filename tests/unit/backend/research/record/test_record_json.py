"""The record of a run as JSON: whatever it holds comes back as it was."""

from datetime import UTC, date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.verification import Support, Verdict
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType, Reference
from backend.research.record.budget import ResearchBudget, Spent
from backend.research.record.final_report import (
    CheckedCitation,
    Contradiction,
    FinalReport,
    ReportCounts,
    SourceStatement,
)
from backend.research.record.plan import ResearchPlan, ResearchTask
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import Clarification, PastMessage, ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.sources import NumberedSource, SourceText
from backend.research.record.task_report import TaskReport
from backend.web_search.results import Freshness
from connectors.document import Span
from connectors.errors import InvalidInputError
from indexing.index.protocols import DateRange, Filters

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
COUNT = st.integers(0, 99)
MOMENT = st.datetimes(timezones=st.just(UTC))
SPAN = st.tuples(COUNT, COUNT).map(lambda pair: Span(*sorted(pair)))
SHARE = st.floats(0, 1)
FILTERS = st.builds(
    Filters,
    sources=st.none() | st.frozensets(TEXT, max_size=2),
    updated=st.builds(DateRange, since=st.none() | MOMENT, until=st.none()),
    any_of=st.lists(st.builds(Filters, tags=st.frozensets(TEXT)), max_size=2).map(tuple),
)
REQUEST = st.builds(
    ResearchRequest,
    question=TEXT,
    history=st.lists(
        st.builds(PastMessage, st.sampled_from(["user", "assistant"]), TEXT), max_size=2
    ).map(tuple),
    uses_documents=st.booleans(),
    uses_web=st.booleans(),
    filters=FILTERS,
    language=st.sampled_from(["en", "zh"]),
    budget=st.builds(ResearchBudget, tokens=COUNT, seconds=SHARE),
    today=st.none() | st.just(date(2026, 3, 1)),
)
TASK = st.builds(ResearchTask, number=COUNT, question=TEXT, round=COUNT, rests_on=TEXTS)
SOURCE = st.builds(
    NumberedSource,
    number=COUNT,
    kind=st.sampled_from(SourceKind),
    document_id=TEXT,
    title=TEXT,
    url=TEXT,
    date=st.none() | MOMENT,
    texts=st.lists(st.builds(SourceText, TEXT, COUNT, COUNT), max_size=2).map(tuple),
)
SOURCES = st.lists(SOURCE, max_size=2).map(tuple)
REFERENCE = st.builds(
    Reference,
    exact_quote=TEXT,
    url=TEXT,
    document_id=st.none() | TEXT,
    title=TEXT,
    date_time=st.none() | MOMENT,
    relevance_score=SHARE,
    answer_chunk=TEXT,
    answer_chunk_position=SPAN,
    section=COUNT,
    span=SPAN,
)
KNOWLEDGE = st.builds(
    KnowledgeItem,
    question=TEXT,
    answer=TEXT,
    type=st.sampled_from(KnowledgeType),
    references=st.lists(REFERENCE, max_size=2).map(tuple),
    updated=st.none() | MOMENT | st.sampled_from(Freshness),
    source_code=st.none() | TEXT,
)
SPENT = st.builds(Spent, tokens=COUNT, seconds=SHARE, cycles=COUNT, pages=COUNT)
TASK_REPORT = st.builds(
    TaskReport,
    task=TASK,
    text=TEXT,
    sources=SOURCES,
    knowledge=st.lists(KNOWLEDGE, max_size=2).map(tuple),
    gaps=TEXTS,
    documents=TEXTS,
    private_text=TEXT,
    spent=SPENT,
    failure=TEXT,
    note=TEXT,
)
SUPPORT = st.builds(Support, TEXT, COUNT, SPAN, SHARE, st.sampled_from(Verdict))
REPORT = st.builds(
    FinalReport,
    markdown=TEXT,
    text=TEXT,
    sources=SOURCES,
    citations=st.lists(
        st.builds(CheckedCitation, COUNT, TEXT, TEXT, st.none() | SUPPORT), max_size=2
    ).map(tuple),
    counts=st.builds(ReportCounts, sentences=COUNT, uncited=COUNT, weak=COUNT),
    not_found=TEXTS,
    contradictions=st.lists(
        st.builds(
            Contradiction,
            TEXT,
            st.lists(st.builds(SourceStatement, COUNT, TEXT), max_size=2).map(tuple),
        ),
        max_size=1,
    ).map(tuple),
    documents=TEXTS,
    notes=TEXTS,
)
RECORD = st.builds(
    ResearchRecord,
    request=REQUEST,
    clarification=st.none() | st.builds(Clarification, TEXTS, st.none() | TEXT),
    plan=st.none() | st.builds(ResearchPlan, st.lists(TASK, max_size=2).map(tuple)),
    added=st.lists(TASK, max_size=2).map(tuple),
    reports=st.lists(TASK_REPORT, max_size=2).map(tuple),
    rounds=COUNT,
    is_searched=st.booleans(),
    spent=SPENT,
    report=st.none() | REPORT,
)


@given(RECORD)
def test_a_record_is_read_as_it_was_written(record: ResearchRecord) -> None:
    written = write_record(record)
    assert written.isascii()
    assert read_record(written) == record


def test_what_no_database_keeps_is_replaced() -> None:
    written = write_record(ResearchRecord(request=ResearchRequest(question="a\ud83d\0b")))
    assert read_record(written).request.question == "a?\ufffdb"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"request": {"question": 3}}'])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="This is no record of a research run"):
        read_record(text)
