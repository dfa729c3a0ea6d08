"""What research found out before is known before anything is searched, and named in the events and in the report."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.chat.earlier_findings import EarlierFinding
from backend.chat.turn_settings import PLAIN, AssistantSettings
from backend.research.agent.private_texts import make_read_texts
from backend.research.agent.run_task import NO_PLACE
from backend.research.events import (
    ActionDone,
    ActionStarted,
    EarlierFindingsUsed,
    PlanMade,
    ReportChecked,
    ReportStarted,
    ResearchEvent,
    RoundDecided,
    SourceFound,
    TaskDone,
    TaskStarted,
)
from backend.research.record.plan import ResearchPlan
from backend.research.record.research_record import ResearchRecord
from backend.research.runs.run_events import list_documents
from backend.research.runs.run_gate import show_record
from backend.search.llm_protocol import CompletionError
from backend.web_search.domains import DomainRules
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline
from tests.support.research_world import ANN, ResearchWorld, research_world
from tests.support.scripted_model import Json, Reply, Request, Say
from tests.unit.backend.research.test_run_rights import at_first

SEAT = "Where has Blau AG its seat?"
FOUND = EarlierFinding(
    id="item1",
    question=SEAT,
    answer="Blau AG has its seat in Bergen.",
    made_at=datetime(2026, 2, 3, tzinfo=UTC),
    is_of_web=False,
    document_ids=frozenset({"kb:maker"}),
)


def _answer_from_findings(values: Json, _: Request) -> Reply:
    found = [
        f"{one['answer'].rstrip('.')} [{one['source']}]." for one in values.get("found_earlier", ())
    ]
    action = {"action": "answer", "answer": " ".join(found)} if found else {"action": "reflect"}
    return Say(json.dumps(action))


def _run(
    world: ResearchWorld, *findings: EarlierFinding, question: str = SEAT, **others: object
) -> ResearchRecord:
    world.model.steps["agent"] = _answer_from_findings

    def find(asked: str, readers: Readers, deadline: Deadline) -> Sequence[EarlierFinding]:
        assert readers == ANN
        assert deadline.remaining() <= 5.0
        return [one for one in findings if one.question == asked]

    return world.run(question, world.dependencies(find_earlier=find, **others))


def _kinds(events: Sequence[ResearchEvent]) -> list[type[object]]:
    return [type(one) for one in events]


def test_a_finding_is_known_before_the_plan_and_before_the_first_search_and_cited_with_its_date() -> (
    None
):
    with research_world() as world:
        record = _run(world, FOUND)
        (planned,) = world.model.of("plan")
    assert record.report is not None
    of_plan, of_task = world.of_kind(EarlierFindingsUsed)
    assert (of_plan.task, of_task.task) == (None, 1)
    assert [one.question for one in of_task.findings] == [SEAT]
    assert [one["found_on"] for one in planned["found_earlier"]] == ["2026-02-03"]
    kinds = _kinds(world.events)
    assert kinds[:4] == [EarlierFindingsUsed, PlanMade, TaskStarted, EarlierFindingsUsed]
    assert kinds.index(ActionStarted) > 3
    assert "found earlier on 2026-02-03" in record.report.markdown
    assert "Bergen [1]" in record.report.text
    assert record.report.sources[0].document_id == "research/item1"
    assert record.report.counts.supported == record.report.counts.citations > 0


def test_all_that_says_something_of_a_finding_rests_on_its_documents() -> None:
    with research_world() as world:
        record = _run(world, FOUND)
    assert record.report is not None
    assert "kb:maker" in record.report.documents
    silent = (ActionDone, ReportStarted, ReportChecked, RoundDecided)
    said = [one for one in world.events if "Blau AG" in str(one) and not isinstance(one, silent)]
    assert {EarlierFindingsUsed, PlanMade, TaskStarted, SourceFound, TaskDone} < set(_kinds(said))
    assert all("kb:maker" in list_documents(one) for one in said)
    hidden = show_record(record, (), frozenset({"kb:price"}))
    assert (hidden.record.plan, hidden.record.report, hidden.record.reports) == (None, None, ())
    assert hidden.withheld


def test_a_finding_whose_document_is_withdrawn_in_mid_run_is_in_no_report() -> None:
    """The plan is made anew without it, and its tasks are done, though they have the numbers of those before."""
    findings = [FOUND]

    def withdraw() -> None:
        index = world.world.index
        kept = tuple(one for one in index.corpus if one.document_id != "kb:maker")
        object.__setattr__(index, "corpus", kept)
        findings.clear()

    with research_world() as world:
        world.on_event = at_first(TaskStarted, withdraw)
        parts = world.dependencies(find_earlier=lambda *_: [*findings])
        record = world.run(f"{SEAT}; What does the Aster pump cost?", parts)
    assert [one.plan.rests_on for one in world.of_kind(PlanMade)] == [("kb:maker",), ()]
    assert record.report is not None
    assert "40 EUR" in record.report.markdown
    shown = str(record.report)
    assert "Bergen" not in shown
    assert "research/item1" not in shown
    assert "kb:maker" not in record.documents


def test_a_task_that_failed_rests_on_what_its_question_was_written_from() -> None:
    """Else its question would be shown to whoever may not read that."""
    asked = "Where in Bergen has Blau AG its seat?"
    with research_world() as world:
        world.model.steps["plan"] = lambda *_: Say(json.dumps({"tasks": [asked]}))
        parts = world.dependencies(find_earlier=lambda *_: [FOUND], open_search=None)
        record = world.run(SEAT, parts)
        (done,) = world.of_kind(TaskDone)
    (failed,) = world.saved[-1].reports
    assert (failed.failure, failed.documents) == (NO_PLACE, ("kb:maker",))
    assert list_documents(done) == ("kb:maker",)
    hidden = show_record(world.saved[-1], (), frozenset())
    assert asked not in str(hidden.record)
    assert record.report is None


def test_a_private_finding_is_known_to_its_task_and_not_to_the_plan() -> None:
    """Else all tasks would be hidden from whoever may not read it."""
    with research_world(private=["kb:maker"]) as world:
        record = _run(world, FOUND)
    assert [one.task for one in world.of_kind(EarlierFindingsUsed)] == [1]
    assert record.plan is not None
    assert record.plan.rests_on == ()
    assert record.report is not None
    assert "Bergen [1]" in record.report.text


@pytest.mark.parametrize(
    "narrowed",
    [
        replace(PLAIN, scope=Filters(document_ids=frozenset({"kb:price"}))),
        replace(PLAIN, searches=False),
        replace(PLAIN, domains=DomainRules.of(["news.test"], [])),
    ],
)
def test_an_assistant_that_searches_a_part_only_begins_with_no_finding(
    narrowed: AssistantSettings,
) -> None:
    with research_world() as world:
        _run(world, FOUND, resolve_assistant=lambda _: narrowed)
    assert world.of_kind(EarlierFindingsUsed) == []


def test_where_documents_are_switched_off_no_finding_is_used() -> None:
    with research_world() as world:
        parts = world.dependencies(find_earlier=lambda *_: [FOUND])
        world.run(SEAT, parts, uses_documents=False, uses_web=True)
    assert world.of_kind(EarlierFindingsUsed) == []
    assert "Bergen" not in str(world.events)


def test_what_rests_on_a_memory_or_cannot_be_looked_up_is_not_used() -> None:
    def fail(*_: object) -> Sequence[EarlierFinding]:
        raise CompletionError("the database is away")

    of_memory = replace(FOUND, document_ids=frozenset({"memory/m1"}))
    with research_world() as world:
        _run(world, of_memory)
        world.run(SEAT, world.dependencies(find_earlier=fail))
    assert world.of_kind(EarlierFindingsUsed) == []
    assert "What was found earlier could not be looked up." in str(world.events)


def test_what_findings_say_is_kept_out_of_queries_of_the_web() -> None:
    secret = replace(FOUND, answer="The codename of the merger is Zephyr-19.")
    with research_world() as world:
        record = _run(world, secret)
    assert record.plan is not None
    texts = make_read_texts(record, record.plan.tasks[0], ANN, 0)
    assert texts.check_query("Who runs Zephyr-19?").removed
    public = replace(secret, document_ids=frozenset(), is_of_web=True)
    with research_world() as world:
        record = _run(world, public)
    assert record.plan is not None
    assert record.plan.private_text == ""


def test_an_edited_plan_rests_on_what_it_was_made_with() -> None:
    plan = replace(ResearchPlan.of_questions(["a?"], ("kb:maker",)), private_text="secret")
    edited = plan.with_questions(["b?", "c?"])
    assert [one.rests_on for one in edited.tasks] == [("kb:maker",)] * 2
    assert (edited.rests_on, edited.private_text) == (("kb:maker",), "secret")


@pytest.mark.parametrize(("findings", "kept"), [([FOUND], 0), ([], 1)])
def test_an_answer_that_rests_on_an_earlier_finding_is_not_kept_as_a_new_one(
    findings: list[EarlierFinding], kept: int
) -> None:
    """It would be as fresh as today, whenever that was found; one that rests on a document is kept."""

    def decide(values: Json, _: Request) -> Reply:
        if "open_questions" not in values and "reflect" not in asked:
            asked.append("reflect")
            return Say(json.dumps({"action": "reflect", "questions": ["Who is it?"]}))
        first = values["sources"][0]["source"]
        return Say(json.dumps({"action": "answer", "answer": f"Blau AG [{first}]."}))

    asked: list[str] = []
    fits = {"definite": True, "fresh": True, "complete": True, "reason": ""}
    with research_world() as world:
        world.model.steps |= {"agent": decide, "judge": lambda *_: Say(json.dumps(fits))}
        parts = world.dependencies(find_earlier=lambda *_: findings, web=None)
        record = world.run("Who makes the Aster pump?", parts)
    learned = [item for report in record.reports for item in report.knowledge]
    assert len([one for one in learned if one.question == "Who is it?"]) == kept
