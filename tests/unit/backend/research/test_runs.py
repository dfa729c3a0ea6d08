"""Whole runs by a model that answers only from what it is sent: the plan, events, numbering and report are as they must be."""

import pytest

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.verification import Verdict
from backend.research.events import PlanMade, ReportStarted, RoundDecided
from backend.research.knowledge_items import KnowledgeType
from backend.research.record.request import PastMessage
from tests.support.research_world import QUESTION, check_run, list_markers, research_world
from tests.support.soak import scaled

SEEDS = range(scaled(3, 60, "faults"))


@pytest.mark.deep("faults")
@pytest.mark.parametrize("seed", SEEDS)
def test_documents_are_researched(seed: int) -> None:
    with research_world(seed=seed) as world:
        record = world.run()
        report = check_run(world, record)
    (planned,) = world.of_kind(PlanMade)
    assert [one.question for one in planned.plan.tasks] == QUESTION.split("; ")
    assert "The Aster pump costs 40 EUR [" in report.text
    assert "The Aster pump is made by Blau AG [" in report.text
    assert "canteen" not in report.text
    assert {one.kind for one in report.sources} == {SourceKind.DOCUMENT}
    assert {one.document_id for one in report.sources} == {"kb:price", "kb:maker", "kb:weight"}
    assert {one.verdict for one in report.citations} == {Verdict.SUPPORTED}
    assert "2026-03-01" in report.markdown
    assert (world.world.queries, world.world.pages_asked) == ([], [])
    assert world.of_kind(ReportStarted) == [ReportStarted("The search is at its end.")]


@pytest.mark.deep("faults")
@pytest.mark.parametrize("seed", SEEDS)
def test_documents_and_the_web_are_researched_and_their_contradictions_told(seed: int) -> None:
    with research_world(seed=seed) as world:
        record = world.run(uses_web=True)
        report = check_run(world, record)
    by_id = {one.document_id: one for one in report.sources}
    assert {one.kind for one in report.sources} == {SourceKind.DOCUMENT, SourceKind.WEB}
    (contradiction,) = report.contradictions
    said = {one.says: report.sources[one.number - 1] for one in contradiction.statements}
    assert said["The Aster pump costs 40 EUR."] == by_id["kb:price"]
    assert said["The Aster pump costs 45 EUR."].title == "News of the Aster pump"
    told = report.markdown.partition("## Where sources disagree")[2].partition("##")[0]
    assert "About kb:price (2026-03-01): The Aster pump costs 40 EUR. [" in told
    assert "News of the Aster pump (2026-02-03): The Aster pump costs 45 EUR. [" in told
    assert {one.verdict for one in report.citations} == {Verdict.SUPPORTED}


@pytest.mark.deep("faults")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_web_alone_is_researched_and_a_round_asks_on(seed: int) -> None:
    facts = {
        "/aster": ("The maker of the Aster", "The Aster pump is made by Blau AG."),
        "/blau": ("All about Blau AG", "Blau AG has its seat in Lyon."),
    }
    with research_world(web=facts, seed=seed) as world:
        record = world.run(uses_web=True, uses_documents=False)
        report = check_run(world, record)
    first, last = world.of_kind(RoundDecided)
    assert [one.question for one in first.tasks] == ["Where has Blau AG its seat?"]
    assert (first.round, first.tasks[0].round, last.tasks) == (1, 1, ())
    assert "Blau AG has its seat in Lyon [" in report.text
    assert {one.kind for one in report.sources} == {SourceKind.WEB}
    assert world.world.index.finds == []
    assert report.documents == ()


def test_numbers_do_not_depend_on_which_task_ends_first() -> None:
    texts = []
    for _ in range(3):
        with research_world(seed=1) as world:
            report = world.run(uses_web=True).report
            assert report is not None
            # The port of the web differs from run to run.
            texts.append((report.text, [one.title for one in report.sources]))
    assert texts[0] == texts[1] == texts[2]


def test_what_was_learned_is_kept_with_each_report() -> None:
    with research_world() as world:
        record = world.run(uses_web=True)
    items = [item for one in record.reports for item in one.knowledge]
    assert {item.type for item in items} == {KnowledgeType.URL, KnowledgeType.SIDE_INFO}
    assert all(item.references for item in items)


def test_the_conversation_before_is_known_to_the_plan_and_to_each_agent() -> None:
    history = (
        PastMessage("user", "Which pump do we use?"),
        PastMessage("assistant", "The Aster pump."),
    )
    with research_world() as world:
        record = world.run(history=history)
        check_run(world, record)
    (planned,) = world.model.of("plan")
    assert [one["text"] for one in planned["conversation_before"]] == [
        "Which pump do we use?",
        "The Aster pump.",
    ]
    asked = [one for one in world.world.server.requests if "You research one question" in one.text]
    assert all("The Aster pump." in one.text for one in asked)


def test_what_was_not_found_is_told() -> None:
    with research_world() as world:
        record = world.run("What does the Aster pump cost?; Who won the football match?")
        report = check_run(world, record)
    (missing,) = report.not_found
    assert missing.startswith("Who won the football match? Nothing was found that answers this.")
    assert "## Not found\n\n- Who won the football match?" in report.markdown


def test_a_run_goes_on_at_each_record_that_was_saved() -> None:
    with research_world(seed=2) as world:
        whole = world.run(uses_web=True)
        saved = list(world.saved)
        text = whole.report.text if whole.report else ""
        for record in saved[:-1]:
            world.events, world.saved = [], []
            again = world.go_on(record)
            assert again.report is not None
            assert again.report.text == text
            assert {one.task.number for one in again.reports} == {1, 2, 3}
        done = [one.task.number for one in saved[1].reports]
        assert len(done) == 1


def test_a_report_is_told_in_the_language_of_the_pages() -> None:
    with research_world() as world:
        report = world.run("What does the Aster pump cost?", language="zh").report
    assert report is not None
    assert "## 来源\n\n- [1] [About kb:price]" in report.markdown
    assert f"引用：{len(list_markers(report.text))}，其中有依据：" in report.markdown
