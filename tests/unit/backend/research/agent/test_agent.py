"""The loop of one agent: what it may do next, what it is told, and what it learns."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.chat.llm.client import LanguageModel
from backend.research import prompts
from backend.research.events import ActionDone, ActionKind, ActionStarted, TaskDone
from backend.research.knowledge.messages import MESSAGE_TOKENS
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType
from backend.research.record.budget import ResearchBudget
from backend.research.record.request import PastMessage
from backend.research.record.task_report import TaskReport
from backend.web_search.results import Freshness
from connectors.document import Span
from indexing.embedding.token_counting import estimated_tokens
from indexing.runtime.deadline import Deadline
from tests.contract.provider_worlds.world import Item
from tests.support.agent_world import page
from tests.support.research_world import ResearchWorld, allowed_actions, research_world
from tests.support.scripted_model import Json, Request, Say
from tests.support.services import serving

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
QUESTION = "What does the Aster pump cost?"
ANSWER: Json = {"action": "answer", "answer": "The Aster pump costs 40 EUR [1]."}
FACTS = {"kb:price": "The Aster pump costs 40 EUR."}


@pytest.fixture
def world() -> Iterator[ResearchWorld]:
    with research_world(FACTS) as made:
        yield made


class Script:
    """Decides as it was written, one action a step; the last one again and again. Keeps what it was told."""

    def __init__(self, *actions: Json) -> None:
        self.actions = list(actions)
        self.states: list[Json] = []
        self.allowed: list[set[str]] = []
        self.requests: list[Request] = []

    def __call__(self, values: Json, request: Request) -> Say:
        self.states.append(values)
        self.allowed.append(allowed_actions(request))
        self.requests.append(request)
        action = self.actions.pop(0) if len(self.actions) > 1 else self.actions[0]
        return Say(json.dumps(action))


def run_script(
    world: ResearchWorld, *actions: Json, **request: object
) -> tuple[Script, TaskReport]:
    """Run one task in which the agent does so, after the search of its question."""
    script = Script(*actions)
    world.model.steps = {"agent": script, **world.model.steps}
    parts = replace(world.dependencies(), now=lambda: NOW)
    world.run(QUESTION, parts, **request)
    return script, world.of_kind(TaskDone)[0].report


def list_messages(request: Request) -> list[str]:
    return [str(one["content"]) for one in request.messages]


def kinds(world: ResearchWorld) -> list[str]:
    return [one.action.value for one in world.of_kind(ActionStarted)]


def judge(*verdicts: Json) -> Callable[[Json, Request], Say]:
    left = list(verdicts)
    return lambda *_: Say(json.dumps(left.pop(0)))


GOOD: Json = {"definite": True, "fresh": True, "complete": True}


def test_the_question_is_searched_before_any_model_is_asked(world: ResearchWorld) -> None:
    script, report = run_script(world, ANSWER)
    assert kinds(world) == ["search", "answer"]
    assert [one["source"] for one in script.states[0]["sources"]] == [1]
    assert script.states[0]["sources"][0]["date"] == "2026-03-01"
    assert report.text == "The Aster pump costs 40 EUR [1]."


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ({"action": "search", "queries": ["Aster price"]}, "search"),
        ({"action": "reflect", "questions": []}, "reflect"),
        ({"action": "reflect", "questions": [QUESTION.upper()]}, "reflect"),
    ],
)
def test_what_brought_nothing_is_off_in_the_next_step_alone(
    world: ResearchWorld, action: Json, kind: str
) -> None:
    more = {"action": "reflect", "questions": ["How heavy is it?"]}
    other = more if kind == "search" else {"action": "search", "queries": ["pump"]}
    script, _ = run_script(world, action, other, ANSWER)
    assert kind in script.allowed[0]
    assert kind not in script.allowed[1]
    assert kind in script.allowed[2] or other["action"] == kind
    done = [one for one in world.of_kind(ActionDone) if one.action == kind and one.step == 2]
    assert [one.brought for one in done] == [0]


def test_a_visit_without_new_pages_is_off_in_the_next_step_alone() -> None:
    """A page is not to be had while another one waits: what is off is off for what it brought, not for want of pages."""
    with research_world({}, {}) as world:
        world.serve_pages({"/aster": ("The Aster pump", "The Aster pump costs 45 EUR.")})
        gone = world.world.url("news.test", "/gone")
        world.world.engine.items = [
            Item("Gone", gone, "More about the pump."),
            *world.world.engine.items,
        ]
        lost: Json = {"action": "visit", "pages": [1]}
        think: Json = {"action": "reflect", "questions": ["How heavy is it?"]}
        there: Json = {"action": "visit", "pages": [2]}
        script, _ = run_script(world, lost, think, there, ANSWER, uses_web=True)
    assert ["visit" in allowed for allowed in script.allowed[:3]] == [True, False, True]
    assert [[one["page"] for one in state.get("to_read", ())] for state in script.states[:3]] == [
        ["1", "2"],
        ["2"],
        ["2"],
    ]
    visits = [one for one in world.of_kind(ActionDone) if one.action is ActionKind.VISIT]
    assert [(one.step, one.brought) for one in visits] == [(2, 0), (4, 1)]


def test_an_action_that_is_off_is_not_done(world: ResearchWorld) -> None:
    nothing = {"action": "reflect", "questions": []}
    script, _ = run_script(world, nothing, nothing, ANSWER)
    assert kinds(world) == ["search", "reflect", "answer"]
    assert len(script.states) == 3


def test_a_query_is_searched_once(world: ResearchWorld) -> None:
    again = {"action": "search", "queries": [f" {QUESTION.lower()}  ", "price"]}
    script, _ = run_script(world, again, ANSWER)
    assert [[q.text for q in queries] for queries, _ in world.world.index.finds] == [
        [QUESTION],
        ["price"],
    ]
    assert "Searched before: what does the aster pump cost?" in script.states[1]["notes"]
    assert script.states[1]["queries_tried"] == [QUESTION.casefold(), "price"]


def test_an_answer_that_does_not_count_gives_its_reason_back(world: ResearchWorld) -> None:
    world.model.steps = {
        "judge": judge(
            {"definite": True, "fresh": False, "complete": False, "reason": "2027 is missing."},
            GOOD,
        )
    }
    other = {"action": "search", "queries": ["price of 2027"]}
    script, report = run_script(world, ANSWER, other, ANSWER)
    reason = f"The answer to “{QUESTION}” did not count. It is not fresh and not complete. 2027 is missing."
    assert "notes" not in script.states[1]
    first, second = (list_messages(one) for one in script.requests[:2])
    assert json.loads(first[-1])["question"] == QUESTION
    assert json.loads(second[-2])["question"] == QUESTION
    assert second[-1] == f"An answer was reviewed: {json.dumps(reason, ensure_ascii=False)}"
    assert second[1:-2] == first[1:-1]
    assert "costs 40 EUR" in second[2]
    assert "answer" not in script.allowed[1]
    assert "answer" in script.allowed[2]
    assert report.has_text


def test_after_two_answers_that_do_not_count_the_report_is_of_what_there_is(
    world: ResearchWorld,
) -> None:
    bad = {"definite": False, "fresh": True, "complete": True, "reason": "It depends."}
    world.model.steps = {"judge": judge(bad, bad)}
    other = {"action": "search", "queries": ["price"]}
    script, report = run_script(world, ANSWER, other, ANSWER)
    assert len(script.states) == 3
    assert report.has_text
    assert "It is not definite. It depends." in report.note


def test_an_answer_without_a_source_is_not_even_judged(world: ResearchWorld) -> None:
    bare = {"action": "answer", "answer": "It costs 40 EUR [7]."}
    script, _ = run_script(world, bare, {"action": "search", "queries": ["price"]}, ANSWER)
    assert "It names no source by its number." in list_messages(script.requests[1])[-1]
    assert len(world.model.of("judge")) == 1


def test_the_judge_sees_the_question_the_answer_and_the_dates(world: ResearchWorld) -> None:
    run_script(world, ANSWER)
    (seen,) = world.model.of("judge")
    assert seen == {
        "question": QUESTION,
        "answer": "The Aster pump costs 40 EUR [1].",
        "sources": [{"source": 1, "title": "About kb:price", "date": "2026-03-01"}],
    }


def test_the_judge_is_the_fast_model(world: ResearchWorld) -> None:
    settings = replace(world.writer.settings, model="fast-one")
    with closing(LanguageModel(settings)) as fast:
        world.run(QUESTION, world.dependencies(fast=fast))
    by_model = {str(one.body["model"]): set[str]() for one in world.world.server.requests}
    for one in world.world.server.requests:
        by_model[str(one.body["model"])].add(one.text[:40])
    assert any(text.startswith("You judge an answer") for text in by_model["fast-one"])
    assert not any(text.startswith("You judge an answer") for text in by_model["scripted"])
    assert any(text.startswith("You write the report") for text in by_model["scripted"])


def test_a_judge_that_fails_lets_the_answer_count_and_says_so(world: ResearchWorld) -> None:
    world.model.steps = {"judge": lambda *_: Say("hm")}
    script, report = run_script(world, ANSWER)
    assert report.has_text
    done = world.of_kind(ActionDone)[-1]
    assert "could not be judged" in done.notes[0]
    assert len(script.states) == 1


def test_questions_that_came_up_are_worked_on_in_turn(world: ResearchWorld) -> None:
    reflect = {"action": "reflect", "questions": ["How heavy is it?", "How old is it?"]}
    searches = [{"action": "search", "queries": [f"query {at}"]} for at in range(3)]
    script, report = run_script(world, reflect, searches[0], reflect, searches[1], ANSWER)
    asked = [one["question"] for one in script.states]
    assert asked[:4] == [QUESTION, "How heavy is it?", "How old is it?", QUESTION]
    assert script.states[1]["for_the_question"] == QUESTION
    assert script.states[1]["open_questions"] == ["How heavy is it?", "How old is it?"]
    assert set(report.gaps) <= {"How heavy is it?", "How old is it?"}


def test_a_question_on_the_way_that_is_answered_is_known_with_its_quote(
    world: ResearchWorld,
) -> None:
    reflect = {"action": "reflect", "questions": ["Which price has the Aster pump?"]}
    script, report = run_script(world, reflect, ANSWER, ANSWER)
    (item,) = [one for one in report.knowledge if one.type is KnowledgeType.QA]
    assert (item.question, item.answer) == (
        "Which price has the Aster pump?",
        "The Aster pump costs 40 EUR.",
    )
    assert item.updated == NOW
    (reference,) = item.references
    assert reference.exact_quote == "The Aster pump costs 40 EUR."
    assert reference.document_id == "kb:price"
    assert reference.answer_chunk_position == Span(0, len(item.answer))
    assert report.gaps == ()
    assert script.states[2]["question"] == QUESTION
    told = world.world.server.requests
    assert any("Which price has the Aster pump?" in one.text for one in told)


def test_calculations_are_offered_where_there_is_a_sandbox(world: ResearchWorld) -> None:
    script, _ = run_script(world, ANSWER)
    assert "code" not in script.allowed[0]

    def calculate(problem: str, program: str, deadline: Deadline) -> KnowledgeItem | str:
        deadline.check()
        if "fail" in program:
            return "The program failed: line 1."
        return KnowledgeItem(
            question=f"What is the solution to the coding issue: {problem}?",
            answer="80",
            type=KnowledgeType.CODING,
            source_code=program,
            updated=NOW,
        )

    broken = {"action": "code", "problem": "two pumps", "program": "fail"}
    works = {"action": "code", "problem": "two pumps", "program": "print(2 * 40)"}
    script = Script(broken, {"action": "search", "queries": ["x"]}, works, ANSWER)
    world.model.steps = {"agent": script}
    world.events.clear()
    record = world.run(QUESTION, replace(world.dependencies(), calculate=calculate))
    assert "The program failed: line 1." in script.states[1]["notes"]
    assert "code" not in script.allowed[1]
    (item,) = [one for one in record.reports[0].knowledge if one.type is KnowledgeType.CODING]
    assert (item.answer, item.source_code) == ("80", "print(2 * 40)")
    asked = world.model.of("task_report")[-1]
    assert [one["answer"] for one in asked["calculated"]] == ["80"]


def test_an_agent_ends_with_its_steps(world: ResearchWorld) -> None:
    searches: Sequence[Json] = [{"action": "search", "queries": [f"query {at}"]} for at in range(9)]
    others: Sequence[Json] = [{"action": "reflect", "questions": [f"Why {at}?"]} for at in range(9)]
    turns = [one for pair in zip(others, searches, strict=True) for one in pair]
    _, report = run_script(world, *turns, budget=ResearchBudget(cycles=5))
    assert report.spent.cycles == 5
    assert report.has_text
    assert report.note == "The steps of this task were used up."


def test_pages_are_opened_by_their_numbers_and_links_followed() -> None:
    web = {
        "/aster": (
            "News of the Aster pump",
            'The Aster pump costs 45 EUR. <a href="/more">more on the Aster pump</a>',
        )
    }
    with research_world({}, web) as world:
        world.world.put("news.test", "/more", world.world.web.pages["news.test/aster"])
        first = {"action": "visit", "pages": [1]}
        script, report = run_script(
            world, first, {"action": "visit", "pages": ["[1.1]", "1"]}, ANSWER, uses_web=True
        )
    assert [one["page"] for one in script.states[0]["to_read"]] == ["1"]
    assert [one["page"] for one in script.states[1]["to_read"]] == ["1.1"]
    assert [one.partition("/")[2] for one in world.world.pages_asked] == ["aster", "more"]
    assert report.spent.pages == 2
    assert [one.action for one in world.of_kind(ActionStarted)][:3] == [
        ActionKind.SEARCH,
        ActionKind.VISIT,
        ActionKind.VISIT,
    ]


class MeetingPages:
    """Serves a page once so many are asked for at the same time; counts how many were."""

    def __init__(self, parties: int) -> None:
        self._meeting = threading.Barrier(parties, timeout=20)
        self._lock = threading.Lock()
        self._open = 0
        self.most = 0

    def __call__(self, request: serving.ReceivedRequest) -> serving.Reply:
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
        with suppress(threading.BrokenBarrierError):
            self._meeting.wait()
        with self._lock:
            self._open -= 1
        title = f"The Aster pump {request.path}"
        return serving.reply_text(page(title, "<p>It costs 45 EUR.</p>"), media_type="text/html")


def test_the_pages_of_one_visit_are_asked_for_at_the_same_time() -> None:
    with research_world({}, {}) as world:
        paths = ["/one", "/two", "/three", "/four"]
        pages = MeetingPages(len(paths))
        for path in paths:
            world.world.put("news.test", path, pages)
        world.world.engine.items = [
            Item(f"The Aster pump {path}", world.world.url("news.test", path), "It costs 45 EUR.")
            for path in paths
        ]
        visit: Json = {"action": "visit", "pages": [1, 2, 3, 4]}
        _, report = run_script(world, visit, ANSWER, uses_web=True)
    assert pages.most == len(paths)
    assert sorted(world.world.pages_asked) == sorted(f"news.test{path}" for path in paths)
    assert report.spent.pages == len(paths)


def test_a_date_that_a_page_does_not_declare_is_told_as_a_guess() -> None:
    with research_world({}, {}) as world:
        declared = "<meta property='article:published_time' content='2025-05-06T07:08:00Z'>"
        said = "<p>The Aster pump costs 45 EUR.</p>"
        items = []
        for path, head in (("/2024/06/08/aster", ""), ("/declared", declared), ("/none", "")):
            url = world.world.put("news.test", path, page("The Aster pump", said, head=head))
            items.append(Item(f"The Aster pump {path}", url, "More."))
        world.world.engine.items = items
        visit: Json = {"action": "visit", "pages": [1, 2, 3]}
        script, report = run_script(world, visit, ANSWER, uses_web=True)
    experts = f"What do experts say about “{QUESTION}”?"
    dated = {
        one.references[0].url.partition("news.test")[2].partition("/")[2]: (
            one.updated,
            one.updated_is_guess,
        )
        for one in report.knowledge
        if one.question == experts
    }
    assert dated == {
        "2024/06/08/aster": (datetime(2024, 6, 8, tzinfo=UTC), True),
        "declared": (datetime(2025, 5, 6, 7, 8, tzinfo=UTC), False),
        "none": (None, False),
    }
    told = "\n".join(list_messages(script.requests[1]))
    assert "<answer-datetime>\n2024-06-08T00:00+00:00 (guessed)\n</answer-datetime>" in told
    assert "<answer-datetime>\n2025-05-06T07:08+00:00\n</answer-datetime>" in told


def test_what_says_least_of_the_question_gives_way_in_a_small_window() -> None:
    """A window of 3,000 tokens leaves 787 for what is known. What was found takes some 60, a question and answer of the conversation
    some 110: of eight that say nothing of the question, six at most fit beside the one that does, though it comes last."""
    asides = [(f"Aside {at}?", f"Aside {at}: {'walls of the garden ' * 20}") for at in range(8)]
    spoken = [*asides, ("What does a part of the Aster pump cost?", "A part costs 7 EUR.")]
    history = tuple(
        message
        for asked, answer in spoken
        for message in (PastMessage("user", asked), PastMessage("assistant", answer))
    )
    shown: dict[int, list[str]] = {}
    for window in (32_000, 3_000):
        with research_world(FACTS, {}, window=window) as world:
            script, _ = run_script(world, ANSWER, history=history)
        shown[window] = list_messages(script.requests[0])
    everything, some = ([one for one, _ in spoken if one in shown[at]] for at in (32_000, 3_000))
    assert everything == [one for one, _ in spoken]
    assert some[:-1] == [one for one, _ in asides[: len(some) - 1]]
    assert some[-1] == spoken[-1][0]
    assert 4 <= len(some) <= 7
    assert any(FACTS["kb:price"] in one for one in shown[3_000])
    known = shown[3_000][1:-1]
    assert sum(estimated_tokens(one) + MESSAGE_TOKENS for one in known) <= 787


def test_results_that_say_alike_things_are_known_together() -> None:
    with research_world({}, {}) as world:
        items = [
            Item(f"Aster price {at}", world.world.url("news.test", f"/{at}"), said)
            for at, said in enumerate(
                [
                    "The Aster pump costs 45 EUR this year.",
                    "The Aster pump costs 45 EUR in shops this year.",
                    "Elephants sleep in the shade of trees at noon.",
                    "Elephants sleep at noon in the shade of old trees.",
                ]
            )
        ]
        world.world.engine.items = items
        _, report = run_script(world, ANSWER, uses_web=True)
    assert world.world.queries == [QUESTION]
    joined = [
        one
        for one in report.knowledge
        if one.type is KnowledgeType.URL and len(one.references) == 2
    ]
    assert [one.question for one in joined] == ["What of Aster price 0?"]
    assert joined[0].answer == "The Aster pump costs 45 EUR this year."
    assert len({one.url for one in joined[0].references}) == 2


def test_a_page_that_failed_is_not_asked_for_again() -> None:
    with research_world({}, {}) as world:
        url = world.world.url("news.test", "/gone")
        world.world.engine.items = [Item("The Aster pump", url, "The Aster pump costs 45 EUR.")]
        first: Json = {"action": "visit", "pages": [1]}
        again: Json = {"action": "visit", "pages": [f"{url}#top"]}
        think: Json = {"action": "reflect", "questions": ["How heavy is it?"]}
        script, report = run_script(world, first, think, again, ANSWER, uses_web=True)
    assert world.world.pages_asked == ["news.test/gone"]
    assert "to_read" in script.states[0]
    assert not any("to_read" in state for state in script.states[1:])
    assert report.spent.pages == 1


def test_no_second_page_is_asked_of_a_name_that_leads_nowhere() -> None:
    """The world resolves names below `.test` alone. A page that is not found says nothing of the others of its host."""
    with research_world({}, {}) as world:
        gone = [world.world.url("gone.example", path) for path in ("/one", "/two")]
        there = [world.world.url("news.test", path) for path in ("/three", "/four")]
        world.world.engine.items = [
            Item(f"The Aster pump {at}", url, "The Aster pump costs 45 EUR.")
            for at, url in enumerate([*gone, *there])
        ]
        first: Json = {"action": "visit", "pages": [1, 3]}
        second: Json = {"action": "visit", "pages": [2, 4]}
        think: Json = {"action": "reflect", "questions": ["How heavy is it?"]}
        script, report = run_script(world, first, think, second, ANSWER, uses_web=True)
    assert [one["page"] for one in script.states[1]["to_read"]] == ["4"]
    assert any("gone.example does not exist" in note for note in script.states[1]["notes"])
    assert world.world.pages_asked == ["news.test/three", "news.test/four"]
    assert report.spent.pages == 3


def test_what_the_internet_says_is_as_new_as_was_asked_for() -> None:
    with research_world({}, {}) as world:
        url = world.world.url("news.test", "/aster")
        world.world.engine.items = [Item("The Aster pump", url, "The Aster pump costs 45 EUR.")]
        recent: Json = {"action": "search", "queries": ["Aster price"], "freshness": "month"}
        _, report = run_script(world, recent, ANSWER, uses_web=True)
    asked = [world.world.engine.read_query(one) for one in world.world.engine_service.log]
    assert [(one["text"], one["freshness"]) for one in asked] == [
        (QUESTION, None),
        ("Aster price", "month"),
    ]
    said = {
        one.question: one.updated for one in report.knowledge if one.type is KnowledgeType.SIDE_INFO
    }
    assert said == {
        f"What does the internet say about “{QUESTION}”?": None,
        "What does the internet say about “Aster price”?": Freshness.MONTH,
    }


def test_a_range_of_time_is_offered_where_the_web_is_searched() -> None:
    with_web = prompts.agent_prompt({"search"}, ["documents", "web"], None)
    assert '"freshness": "day", "week", "month" or "year"' in with_web
    without = prompts.agent_prompt({"search"}, ["documents"], None)
    assert "freshness" not in without.lower()
