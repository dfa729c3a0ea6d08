"""What turns in Chat mode join: files, the web, documents, memories and pictures, under one numbering."""

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.chat.citation_checker import CitationChecker
from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.judgement import ClaimJudge
from backend.chat.citations.verification import Verdict
from backend.chat.context_files import ContextFile
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.events import AnswerDone, MemoriesShown, TextPiece, WebSearched
from backend.chat.intent.search_plan import Side
from backend.chat.pictures import Picture
from backend.chat.rights_watch import DocumentWithdrawnError, RightsWatch, list_documents
from backend.search.events import Queries, StepFailed
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.store.chat.memories import Memory
from backend.web_search.domains import DomainRules
from backend.web_search.search import WebSearch
from connectors.access import Access, Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.embedding.token_counting import estimated_tokens
from indexing.runtime.deadline import Deadline
from tests.contract.provider_worlds.world import Item
from tests.support.chat_turns import (
    ANN,
    DENMARK,
    FOUND,
    LEAVE,
    LYON,
    MATCH,
    ChatTurns,
    answer_from_sources,
    cited,
    read_selection,
    write_plan,
)
from tests.support.open_web import open_web
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.search import MemoryIndex, chunk

KNOWLEDGE, WEB = frozenset({Side.KNOWLEDGE}), frozenset({Side.WEB})
NONE: frozenset[Side] = frozenset()
MESSAGE = "How does our parental leave compare with the law in Denmark?"
PLAN = write_plan("Danish leave law", "parental leave", "Our leave and Danish law")
DAY = datetime(2026, 3, 2, tzinfo=UTC)
BERLIN = Memory(id="m1", text="My law is that of Denmark.", created_at=DAY, updated_at=DAY)
PICTURE = Picture("file:pic", "law.png", "image/png", b"\x89PNG")
FINDING = EarlierFinding(
    id="k1",
    question="Which leave does Danish law give?",
    answer="The law of Denmark gives leave of 24 weeks.",
    made_at=DAY,
    is_of_web=False,
    document_ids=frozenset({"kb:leave"}),
)
FILE = ContextFile(document_id="file:1", name="Plan", text="The plan for leave is one year.")


def remember(question: str, deadline: Deadline) -> Sequence[Memory]:
    assert question.strip()
    assert 0 < deadline.remaining() <= 2.0
    return [BERLIN]


@pytest.fixture
def turns(server: ScriptedModel) -> Iterator[ChatTurns]:
    with open_web(FOUND) as web:
        opened = ChatTurns(server, web)
        yield opened
        opened.close()


def test_the_message_becomes_three_blocks(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=PLAN)
    rules, _, rest = turns.prompt.partition(f"\n\nMy question is:\n{MESSAGE}\n\n")
    assert rules.startswith("Rules for citations:\n- End every sentence")
    assert "[1][2]. Cite in place: do not group citations at the end" in rules
    assert "in the language of the question" in rules
    assert (
        "If no reference is relevant, answer from general knowledge, and say that you do." in rules
    )
    assert rest.startswith('Reference materials:\n```json\n[\n{"id": 1, ')
    assert rest.endswith("}\n]\n```")
    assert "Reference materials" not in turns.answering.messages[0]["content"]


def test_knowledge_alone_never_fills_a_gap(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=PLAN, sides=KNOWLEDGE)
    assert "Never fill the gap by guessing." in turns.prompt
    assert "Never fill the gap by guessing." in turns.answering.messages[0]["content"]
    assert "general knowledge" not in turns.answering.text


def test_what_the_web_says_is_shown_as_a_list_where_nothing_is_rewritten(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, sides=WEB, rewrites=False)
    assert (
        f"Reference materials:\n1. Title: Leave in Denmark\n   Address: {DENMARK}\n"
        "   Summary: Danish law gives parents 24 weeks of leave each." in turns.prompt
    )
    assert "```" not in turns.prompt


def test_the_list_of_the_web_stands_in_the_order_of_the_numbers(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, rewrites=False, files=(FILE,))
    prompt = turns.prompt.partition("Reference materials:\n")[2]
    listed = [int(one) for one in re.findall(r'(?m)^(?:(?:\{"id": )|(?=\d+\. Title))(\d+)', prompt)]
    assert listed == list(range(1, len(listed) + 1))
    blocks = prompt.split("\n\n")
    assert [one.startswith("```json") for one in blocks[:3]] == [True, False, True]
    assert f"2. Title: Leave in Denmark\n   Address: {DENMARK}" in blocks[1]


def test_files_come_first_then_earlier_research_the_web_documents_memories_and_pictures(
    turns: ChatTurns,
) -> None:
    turns.find_memories = remember
    turns.find_earlier = lambda _, __: (FINDING,)
    parts = turns.make_parts(turns.make_model(32_000, sees_pictures=True))
    done = turns.ask(MESSAGE, plan=PLAN, parts=parts, files=(FILE,), pictures=(PICTURE,))
    kinds = ["file", "research", "url", "document", "memory", "image"]
    assert _squeeze(turns.shown) == kinds
    numbers = [number for number, _ in turns.shown]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [one.kind for one in done.documents] == [SourceKind(kind) for _, kind in turns.shown]
    assert [one.number for one in done.documents] == numbers
    [remembered] = [one for one in done.citations if one.kind is SourceKind.MEMORY]
    assert remembered.document_id == "memory/m1"
    assert "law.png" in turns.prompt


def _squeeze(shown: Sequence[tuple[int, str]]) -> list[str]:
    return list(dict.fromkeys(kind for _, kind in shown))


def test_a_model_that_does_not_see_is_shown_no_picture(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=PLAN, pictures=(PICTURE,))
    assert "image" not in _squeeze(turns.shown)
    assert "law.png" not in turns.answering.text


def test_an_answer_rests_on_its_memories_before_it_begins(turns: ChatTurns) -> None:
    turns.find_memories = remember
    turns.ask(MESSAGE, plan=PLAN)
    kinds = [type(event) for event in turns.events]
    assert kinds.index(MemoriesShown) < kinds.index(TextPiece)
    [shown] = turns.of_kind(MemoriesShown)
    assert list_documents(shown) == ["memory/m1"]
    assert "memory/m1" in list_documents(turns.events[-1])


def test_memories_are_cited_where_nothing_is_searched(turns: ChatTurns) -> None:
    turns.find_memories = remember
    done = turns.ask("Which law is mine?", sides=NONE)
    assert cited(done) == [(1, "memory/m1", SourceKind.MEMORY)]
    assert "Never fill" not in turns.answering.text
    assert "quoted material" in turns.answering.messages[0]["content"]


def test_where_nothing_is_searched_or_remembered_a_number_is_no_citation(turns: ChatTurns) -> None:
    turns.find_memories = lambda _, __: ()
    turns.server.play([Say("Write a[1] for the second.")])
    done = turns.ask("How do I index an array?", sides=NONE)
    assert done.text == "Write a[1] for the second."
    assert done.is_general_knowledge
    assert turns.prompt == "How do I index an array?"


def test_a_greeting_needs_no_memory(turns: ChatTurns) -> None:
    turns.find_memories = remember
    turns.ask("Hello")
    assert turns.prompt == "Hello"
    assert turns.of_kind(MemoriesShown) == []


def test_memories_that_come_too_late_are_not_blamed_on_the_model(turns: ChatTurns) -> None:
    released = threading.Event()

    def hang(_: str, __: Deadline) -> Sequence[Memory]:
        released.wait(30)
        return ()

    turns.find_memories = hang
    turns.ask("Which law is mine?", sides=NONE)
    released.set()
    assert turns.of_kind(StepFailed) == [StepFailed("memory", "it did not end in time")]


def test_memories_that_cannot_be_read_cost_the_answer_nothing_else(turns: ChatTurns) -> None:
    def fail(_: str, __: Deadline) -> Sequence[Memory]:
        raise CompletionError("the database does not answer")

    turns.find_memories = fail
    done = turns.ask(MESSAGE, plan=PLAN)
    assert turns.lost == ["memory"]
    assert len(done.citations) == 2


def test_what_a_message_is_searched_as_has_its_weights(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=write_plan(knowledge="leave|law", rewrite="Our leave?"))
    planned = turns.of_kind(Queries)[-1].variants
    assert [(one.name, one.text, one.weight) for one in planned] == [
        ("original", MESSAGE, 2.0),
        ("semantic", "Our leave?", 1.75),
        ("llm", "leave", 1.5),
        ("llm", "law", 1.5),
        ("keyword", "keywords", 1.25),
    ]


def test_a_rewrite_that_is_the_message_weighs_with_it(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=write_plan(knowledge="leave", rewrite=MESSAGE))
    planned = turns.of_kind(Queries)[-1].variants
    assert [(one.name, one.weight) for one in planned][:2] == [("original", 3.75), ("llm", 1.5)]


class Rounds:
    """A model and a search engine that answer only when all that belongs beside them has come."""

    def __init__(self, turns: ChatTurns) -> None:
        self.steps: list[str] = []
        self.first = threading.Barrier(2, timeout=20)
        """The plan and the keywords."""
        self.second = threading.Barrier(3, timeout=20)
        """The selection, and the searches of the web for the message and a question."""
        turns.server.play(self)
        turns.server.plan = self.plan
        turns.web.engine.before = self.second.wait

    def plan(self, _: Request) -> Reply:
        self.steps.append("plan")
        self.first.wait()
        return Say(PLAN)

    def __call__(self, request: Request) -> Reply:
        if request.answers:
            self.steps.append("answer")
        elif read_selection(request) is not None:
            self.steps.append("selection")
            self.second.wait()
        else:
            self.steps.append("keywords")
            self.first.wait()
        return answer_from_sources(request)


def test_an_answer_takes_three_rounds_and_the_web_none(turns: ChatTurns) -> None:
    more = tuple(chunk(f"kb:{n}", 0, f"Parental leave of team {n} is {n} weeks.") for n in range(5))
    turns.index = MemoryIndex(more)
    rounds = Rounds(turns)
    done = turns.ask(MESSAGE)
    assert set(rounds.steps[:2]) == {"plan", "keywords"}
    assert rounds.steps[2:] == ["selection", "answer"]
    assert len(turns.web.queries) == 2
    assert done.citations


def test_a_greeting_takes_one_call(turns: ChatTurns) -> None:
    turns.ask("Hello!")
    assert len(turns.server.requests) == 1
    assert turns.server.planned == []


def test_the_plan_is_asked_for_with_the_conversation(turns: ChatTurns) -> None:
    history = (ChatMessage("user", "How long is leave?"), ChatMessage("assistant", "14 weeks [1]."))
    turns.ask("And in Denmark?", plan=PLAN, history=history, sides=WEB)
    [asked] = turns.server.planned
    said = asked.messages[-1]["content"]
    assert "How long is leave?" in said
    assert "14 weeks." in said
    assert '"searched": ["websearch"]' in said


def test_no_tool_is_offered(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=PLAN)
    assert all("tools" not in one.body for one in turns.server.requests)


def test_results_of_several_searches_are_taken_by_turns_and_each_page_once(
    turns: ChatTurns,
) -> None:
    turns.ask("Who won?", plan=write_plan("rain Lyon|leave Denmark|weather rain"), sides=WEB)
    shown = [one["sourceUrl"] for one in turns.answering.sources]
    assert shown == [MATCH, LYON, DENMARK]


def test_what_was_searched_before_is_not_asked_again(turns: ChatTurns) -> None:
    session = turns.web.session()
    for _ in range(2):
        parts = replace(turns.make_parts(), web=session)
        turns.ask("Will it rain in Lyon?", sides=WEB, rewrites=False, parts=parts)
        assert "Tomorrow it rains in Lyon [[1]]" in turns.text
    assert turns.web.queries == ["Will it rain in Lyon?"]
    assert turns.web.cached == [("search", "miss"), ("search", "hit")]
    [searched] = turns.of_kind(WebSearched)
    assert searched.finding.receivers == ()


def test_an_assistant_keeps_to_its_domains(turns: ChatTurns) -> None:
    turns.domains = DomainRules.of((), ("sky.example", "news.test"))
    pool = turns.web.pages.url("/en/pool")
    plan = write_plan("Lyon").replace("</websearch>", f"<links>{pool}</links></websearch>")
    turns.ask(f"What of Lyon does {pool} say?", plan=plan, sides=WEB)
    assert [one["sourceUrl"] for one in turns.answering.sources] == [MATCH]
    assert turns.web.pages.requests == []
    assert "Note: Pages of news.test may not be read here." in turns.prompt


SECRET = chunk(
    "kb:falcon", 0, "Project Falcon costs 4,300 EUR.", Access.to(["user:ann@example.com"])
)
ASKS_SECRET = write_plan("Project Falcon market price|project market prices", "project price")


@pytest.fixture
def falcon(turns: ChatTurns) -> ChatTurns:
    turns.index = MemoryIndex((SECRET,))
    return turns


def test_what_only_internal_documents_say_is_kept_out_of_planned_questions(
    falcon: ChatTurns,
) -> None:
    falcon.ask("How does the project compare with the market?", plan=ASKS_SECRET)
    assert falcon.web.queries == [
        "How does the project compare with the market?",
        "Project market price",
        "project market prices",
    ]
    withheld = {one.finding.query: one.withheld for one in falcon.of_kind(WebSearched)}
    assert withheld["Project market price"] == ("Project Falcon",)


@pytest.mark.parametrize("before", [(), ("market rates",), ("market rates", "costs of rivals")])
def test_a_plan_that_repeats_the_message_lets_no_internal_name_out(
    falcon: ChatTurns, before: Sequence[str]
) -> None:
    message = "Compare the costs"
    questions = ("Project Falcon price", *before, message.upper())
    falcon.ask(message, plan=write_plan("|".join(questions), "project price"))
    assert set(falcon.web.queries) == {message, "price", *before}


def test_a_question_of_which_nothing_is_left_is_not_sent(falcon: ChatTurns) -> None:
    falcon.ask("Compare the costs", plan=write_plan("Project Falcon", "project price"))
    assert falcon.web.queries == ["Compare the costs"]
    [refused, _] = falcon.of_kind(WebSearched)
    assert refused.withheld == ("Project Falcon",)
    assert refused.finding.receivers == ()
    assert "was not sent to the web" in refused.finding.problem


def test_what_the_asker_wrote_is_sent(falcon: ChatTurns) -> None:
    history = (
        ChatMessage("user", "Tell me about Project Falcon"),
        ChatMessage("assistant", "Yes."),
    )
    falcon.ask("Compare the costs", plan=ASKS_SECRET, history=history)
    assert "Project Falcon market price" in falcon.web.queries


ANSWERED = (
    ChatMessage("user", "How does it go?"),
    ChatMessage("assistant", "Project Falcon costs 4,300 EUR [1]."),
)
ASKS_ANSWERED = write_plan("Project Falcon rivals|4,300 EUR in dollars|prices of rivals")


@pytest.mark.parametrize(
    "told", [{"history": ANSWERED}, {"summary": "Project Falcon costs 4,300 EUR."}]
)
def test_what_was_answered_before_is_kept_out_where_no_document_is_searched(
    turns: ChatTurns, told: dict[str, Any]
) -> None:
    turns.ask("And the rivals?", plan=ASKS_ANSWERED, sides=WEB, **told)
    assert turns.web.queries == ["And the rivals?", "in dollars", "prices of rivals", "rivals"]
    assert ("Project Falcon",) in [one.withheld for one in turns.of_kind(WebSearched)]


def test_what_was_answered_before_is_kept_out_where_the_search_finds_nothing_of_it(
    turns: ChatTurns,
) -> None:
    turns.ask("And the rivals?", plan=ASKS_ANSWERED, history=ANSWERED)
    assert turns.web.queries == ["And the rivals?", "in dollars", "prices of rivals", "rivals"]


def test_what_was_answered_before_may_be_asked_by_the_asker(turns: ChatTurns) -> None:
    message = "Who are rivals of Project Falcon?"
    turns.ask(message, plan=ASKS_ANSWERED, sides=WEB, history=ANSWERED)
    assert turns.web.queries == [
        "Project Falcon rivals",
        message,
        "in dollars",
        "prices of rivals",
    ]


def test_internal_names_are_kept_in_where_it_cannot_be_read_whether_they_may_go_out(
    turns: ChatTurns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: WebSearch) -> bool:
        raise TemporarilyUnavailableError("the database is busy", timedelta(seconds=1))

    monkeypatch.setattr(WebSearch, "keeps_internal_names", property(fail))
    turns.ask("And the rivals?", plan=ASKS_ANSWERED, sides=WEB, history=ANSWERED)
    assert turns.web.queries == ["And the rivals?", "in dollars", "prices of rivals", "rivals"]


def test_admins_may_let_internal_names_out(falcon: ChatTurns) -> None:
    falcon.web.rules = replace(falcon.web.rules, keeps_internal_names=False)
    falcon.ask("Compare the costs", plan=ASKS_SECRET)
    assert "Project Falcon market price" in falcon.web.queries


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        ("Danish law gives parents 24 weeks of leave each", Verdict.SUPPORTED),
        ("Danish law gives parents 52 weeks of leave each", Verdict.CONTRADICTED),
    ],
)
def test_citations_of_the_web_are_checked_against_what_was_shown(
    turns: ChatTurns, says: str, verdict: Verdict
) -> None:
    turns.server.play([Say(f"{says} [1].")])
    events = turns.start(MESSAGE, sides=WEB, rewrites=False)
    deadline = Deadline.after(10)
    judge = ClaimJudge(
        complete=lambda _, __: "{}",
        count_tokens=estimated_tokens,
        budget=1_000,
        deadline=deadline,
    )
    checker = CitationChecker(HashingEmbedder(), EVERYTHING, turns.state, judge, deadline)
    *_, done = checker.check_citations(events)
    assert isinstance(done, AnswerDone)
    [citation] = done.citations
    assert (citation.kind, citation.document_id) == (SourceKind.WEB, "https://law.example/dk")
    assert citation.support is not None
    assert citation.support.verdict is verdict


def _watch(turns: ChatTurns, readers: Sequence[Readers]) -> RightsWatch:
    """Who asks has the first of these rights, and the last of them in the end."""
    left = list(readers)
    return RightsWatch(
        readers_now=lambda: left.pop(0) if left[1:] else left[0],
        index=turns.index,
        own_memories=frozenset,
        deadline=Deadline.after(10),
    )


def test_nobody_withdraws_the_web(turns: ChatTurns) -> None:
    events = turns.start(MESSAGE, plan=PLAN, sides=WEB)
    *_, done = _watch(turns, [Readers.of()]).follow(events)
    assert isinstance(done, AnswerDone)
    assert [kind for *_, kind in cited(done)] == [SourceKind.WEB]


def test_an_answer_ends_where_one_of_its_documents_is_withdrawn(turns: ChatTurns) -> None:
    own = chunk(LEAVE, 0, "Our parental leave lasts 14 weeks.", Access.to(["user:ann@example.com"]))
    turns.index = MemoryIndex((own,))
    followed = _watch(turns, [ANN, Readers.of()]).follow(turns.start(MESSAGE, plan=PLAN))
    with pytest.raises(DocumentWithdrawnError):
        turns.events.extend(followed)
    assert LEAVE not in str([one for one in turns.events if isinstance(one, AnswerDone)])


def test_a_result_that_does_not_fit_leaves_no_gap_in_the_numbers(turns: ChatTurns) -> None:
    turns.window = 4_000
    long = "Denmark " + "parental leave and law " * 400
    with open_web([Item("Long", "https://long.example", long), *FOUND]) as web:
        turns.web = web
        turns.ask(MESSAGE, plan=PLAN)
    assert "https://long.example" not in turns.prompt
    numbers = [number for number, _ in turns.shown]
    assert numbers == list(range(1, len(numbers) + 1))
    assert _squeeze(turns.shown) == ["url", "document"]


def test_a_list_of_sources_is_left_out_where_nothing_is_looked_up_too(turns: ChatTurns) -> None:
    """It would name what nobody has looked up."""
    said = "Leave is paid by the state [1]"
    turns.server.play([Say(f"{said}.\n\n## References\n\n[1] The law of leave\n")])
    done = turns.ask("Who pays for leave?", sides=NONE)
    assert done.text == turns.text == f"{said}."
    assert done.citations == ()
