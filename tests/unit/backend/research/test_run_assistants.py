"""A run with an assistant searches what that is limited to, and follows its instructions, as of each step."""

from dataclasses import replace

import pytest

from backend.chat.turn_settings import PLAIN, AssistantSettings
from backend.research.agent.run_task import NO_PLACE
from backend.research.events import ResearchFailed, TaskStarted
from backend.research.run_assistant import ASSISTANT_GONE
from indexing.index.protocols import Filters
from tests.support.research_world import ResearchWorld, name_prompt, research_world
from tests.unit.backend.research.test_run_rights import at_first

BOTH = "What does the Aster pump cost?; What does the Aster pump weigh?"
ONLY_WEIGHT = replace(PLAIN, scope=Filters(document_ids=frozenset({"kb:weight"})))
INSTRUCTIONS = replace(
    PLAIN, instructions="Write for engineers.", project_instructions="Prices are in francs."
)


def _list_read(world: ResearchWorld) -> set[str]:
    """Every document that any step of the run has read."""
    return {one for record in world.saved for report in record.reports for one in report.documents}


def test_nothing_outside_of_what_an_assistant_is_limited_to_is_read() -> None:
    with research_world() as world:
        parts = world.dependencies(resolve_assistant=lambda _: ONLY_WEIGHT)
        record = world.run(BOTH, parts)
    assert record.report is not None
    assert _list_read(world) == {"kb:weight"}
    assert [one.document_id for one in record.report.sources] == ["kb:weight"]
    assert "12 kg" in record.report.markdown
    assert "EUR" not in str(world.events)


def test_the_filters_of_the_question_and_the_assistant_narrow_together() -> None:
    wide = replace(PLAIN, scope=Filters(document_ids=frozenset({"kb:weight", "kb:price"})))
    with research_world() as world:
        parts = world.dependencies(resolve_assistant=lambda _: wide)
        asked = Filters(document_ids=frozenset({"kb:price", "kb:maker"}))
        world.run(BOTH, parts, filters=asked)
    assert _list_read(world) == {"kb:price"}


def test_what_an_assistant_is_limited_to_in_mid_run_counts_for_the_tasks_behind_it() -> None:
    now = [PLAIN]

    def limit() -> None:
        now[0] = ONLY_WEIGHT

    with research_world() as world:
        world.on_event = at_first(TaskStarted, limit)
        world.run(BOTH, world.dependencies(resolve_assistant=lambda _: now[0]))
    assert _list_read(world) == {"kb:weight"}


def test_an_assistant_that_does_not_search_leaves_the_documents_alone() -> None:
    silent = replace(PLAIN, searches=False)
    with research_world() as world:
        record = world.run(BOTH, world.dependencies(resolve_assistant=lambda _: silent))
    assert record.report is None
    assert {one.failure for one in world.saved[-1].reports} == {NO_PLACE}


@pytest.mark.parametrize(
    "offline", [replace(PLAIN, searches_web=False), replace(PLAIN, searches=False)]
)
def test_an_assistant_that_may_not_search_the_web_leaves_it_alone(
    offline: AssistantSettings,
) -> None:
    with research_world() as world:
        parts = world.dependencies(resolve_assistant=lambda _: offline)
        record = world.run(BOTH, parts, uses_documents=False, uses_web=True)
    assert record.report is None
    assert {one.failure for one in world.saved[-1].reports} == {NO_PLACE}


def test_files_bring_an_assistant_that_searches_nothing_no_web() -> None:
    silent = replace(PLAIN, searches=False).with_file_search()
    assert (silent.searches, silent.may_use_web) == (True, False)
    assert PLAIN.with_file_search() == PLAIN


@pytest.mark.parametrize("steps", [0, 2])
def test_a_run_whose_assistant_is_gone_searches_nothing_in_its_place(steps: int) -> None:
    """It is asked for at the beginning of a step, and for each task."""
    asked: list[AssistantSettings | None] = []

    def resolve(_: object) -> AssistantSettings | None:
        asked.append(PLAIN if len(asked) < steps else None)
        return asked[-1]

    with research_world() as world:
        record = world.run(BOTH, world.dependencies(resolve_assistant=resolve))
        (failed,) = world.of_kind(ResearchFailed)
    assert failed.message == ASSISTANT_GONE
    assert record.report is None
    assert _list_read(world) == set()


def test_instructions_stand_behind_the_rules_of_each_prompt_that_plans_searches_or_writes() -> None:
    with research_world() as world:
        world.run(BOTH, world.dependencies(resolve_assistant=lambda _: INSTRUCTIONS))
        of_assistant = {
            name for name, said in _list_prompts(world) if "Write for engineers." in said
        }
        of_project = {name for name, said in _list_prompts(world) if "in francs." in said}
    assert (
        of_assistant == of_project == {"plan", "agent", "task_report", "next_tasks", "final_report"}
    )


def _list_prompts(world: ResearchWorld) -> list[tuple[str, str]]:
    """The name and the system prompt of each call of the model."""
    requests = world.world.server.requests
    return [(name_prompt(one), str(one.messages[0]["content"])) for one in requests]
