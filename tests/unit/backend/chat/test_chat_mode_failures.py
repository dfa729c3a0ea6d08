"""Turns in Chat mode where something fails, is late, is stopped, or has no room."""

import itertools
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backend.chat.chat_state import TurnStatus
from backend.chat.context_files import ContextFile
from backend.chat.events import (
    ChatEvent,
    PagesRead,
    SearchPlanned,
    TextPiece,
    TurnFailed,
    WebSearched,
)
from backend.chat.intent import intent_step
from backend.chat.intent.search_plan import LinkToRead, Searches, Side, SwitchedOff
from backend.chat.intent.search_plan import Queries as Asked
from backend.chat.pictures import Picture
from backend.chat.privacy.query_privacy import AllowedQuery
from backend.chat.references import fit_references
from backend.chat.web_lookup import RunningRead, RunningSearch, WebReferences, start_web_lookup
from backend.search.events import StepFailed
from backend.search.futures import run_in_background
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.search.models import DocumentNumbers
from backend.web_search.pacing import Pacer
from backend.web_search.results import UnreadablePage, WebPage
from backend.web_search.search import SWITCHED_OFF, WebSearch, WebSearchSetup
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.token_counting import estimated_tokens
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.chat_turns import (
    CORPUS,
    DENMARK,
    FOUND,
    ChatTurns,
    answer_from_sources,
    write_plan,
)
from tests.support.open_web import WordEngine, open_web
from tests.support.scripted_model import Manner, Refuse, Reply, Request, Say, ScriptedModel, Silent
from tests.support.search import MemoryIndex, chunk
from tests.support.services.serving import ReceivedRequest, serve
from tests.support.services.serving import Reply as Response
from tests.support.sides import BOTH_SIDES

KNOWLEDGE, WEB = frozenset({Side.KNOWLEDGE}), frozenset({Side.WEB})
MESSAGE = "How does our parental leave compare with the law in Denmark?"
PLAN = write_plan("Danish leave law", "parental leave")
OWN, LAW = (
    "Our parental leave lasts 14 weeks [[",
    "Danish law gives parents 24 weeks of leave each [[",
)


@pytest.fixture
def turns(server: ScriptedModel) -> Iterator[ChatTurns]:
    with open_web(FOUND) as web:
        opened = ChatTurns(server, web)
        yield opened
        opened.close()


def _forget_providers(turns: ChatTurns) -> None:
    turns.web.providers = ()


def _switch_off(turns: ChatTurns) -> None:
    turns.web.rules = replace(turns.web.rules, is_on=False)


def _break_down(turns: ChatTurns) -> None:
    turns.web.engine.instead = turns.web.engine.rejected_key()


def _use_up(turns: ChatTurns) -> None:
    turns.web.engine.instead = turns.web.engine.used_up()


def _hang_up(turns: ChatTurns) -> None:
    turns.web.providers = (turns.web.make_provider(1, "desk", "http://127.0.0.1:9"),)


@pytest.mark.parametrize(
    ("fail", "problem"),
    [
        (_forget_providers, "No web search provider is enabled."),
        (_switch_off, "The web search is switched off."),
        (_break_down, "The web search does not answer now."),
        (_hang_up, "The web search does not answer now."),
        (_use_up, "The web search has reached its limit for now."),
    ],
)
def test_without_the_web_knowledge_answers_and_it_is_said(
    turns: ChatTurns, fail: Callable[[ChatTurns], None], problem: str
) -> None:
    fail(turns)
    done = turns.ask(MESSAGE, plan=PLAN)
    assert OWN in done.text
    assert f"\nNote: {problem}" in turns.prompt
    assert all(one.finding.problem.startswith(problem) for one in turns.of_kind(WebSearched))
    assert [kind for _, kind in turns.shown if kind == "url"] == []


@pytest.mark.parametrize("sides", [WEB, BOTH_SIDES])
def test_a_web_that_was_switched_off_since_is_named(
    turns: ChatTurns, sides: frozenset[Side]
) -> None:
    turns.ask(MESSAGE, plan=PLAN, sides=sides, parts=replace(turns.make_parts(), web=None))
    assert turns.of_kind(StepFailed) == [StepFailed("web", SWITCHED_OFF)]


def test_a_side_that_was_not_chosen_is_not_missed(turns: ChatTurns) -> None:
    parts = replace(turns.make_parts(), web=None)
    turns.ask(MESSAGE, plan=PLAN, sides=KNOWLEDGE, parts=parts)
    assert turns.lost == []


def test_a_database_that_is_busy_costs_the_web_alone(turns: ChatTurns) -> None:
    def read_setup() -> WebSearchSetup:
        raise TemporarilyUnavailableError("The database is busy.", timedelta(seconds=1))

    turns.web.search = WebSearch(read_setup, turns.web._open, turns.web._store_wait, Pacer())
    done = turns.ask(MESSAGE, plan=PLAN)
    assert OWN in done.text
    assert "\nNote: The web search does not answer now." in turns.prompt


def test_without_the_web_alone_what_fails_is_told_to_the_model(turns: ChatTurns) -> None:
    _forget_providers(turns)
    done = turns.ask(MESSAGE, sides=WEB)
    assert turns.prompt == MESSAGE
    assert "No web search provider is enabled" in turns.answering.messages[0]["content"]
    assert done.is_general_knowledge


def _fail_index(*calls: int) -> Callable[[int], None]:
    def fail(call: int) -> None:
        if call in calls:
            raise TemporarilyUnavailableError("the index does not answer", timedelta(seconds=1))

    return fail


def test_without_the_index_the_web_answers_and_it_is_said(turns: ChatTurns) -> None:
    turns.index = MemoryIndex(CORPUS, _fail_index(0, 1, 2))
    done = turns.ask(MESSAGE, plan=PLAN)
    assert LAW in done.text
    assert "knowledge" in turns.lost
    assert "Note: The documents of the organisation could not be searched now." in turns.prompt


def test_without_the_index_what_was_answered_before_is_kept_out(turns: ChatTurns) -> None:
    turns.index = MemoryIndex(CORPUS, _fail_index(0, 1, 2))
    history = (ChatMessage("user", "What do we build?"), ChatMessage("assistant", "QX-4471 [1]."))
    turns.ask("And in Denmark?", plan=write_plan("QX-4471 Denmark", "QX-4471"), history=history)
    assert turns.web.queries == ["And in Denmark?", "Denmark"]
    assert "knowledge" in turns.lost


LEAVE = (
    ChatMessage("user", "How long is our parental leave?"),
    ChatMessage("assistant", "14 weeks [1]."),
)


def _refuse(_: Sequence[ChatMessage], __: Deadline) -> str:
    raise CompletionError("the language model does not answer")


def test_without_a_plan_a_follow_up_is_searched_as_what_it_means(turns: ChatTurns) -> None:
    parts = replace(turns.make_parts(), complete=_refuse)
    turns.ask("What does that cost?", history=LEAVE, parts=parts)
    meant = "How long is our parental leave? What does that cost?"
    assert meant in itertools.chain.from_iterable(turns.searched)
    assert sorted(turns.web.queries) == sorted(["What does that cost?", meant])
    assert turns.lost == ["intent", "keyword_query_expansion"]


def test_without_a_plan_it_is_said_where_no_rule_understands_a_follow_up(turns: ChatTurns) -> None:
    parts = replace(turns.make_parts(), complete=_refuse)
    turns.ask("Who wrote the second one?", history=LEAVE, parts=parts)
    (said,) = [one.reason for one in turns.of_kind(StepFailed) if one.step == "follow_up"]
    assert "“the second one”" in said


def test_with_rewriting_off_a_follow_up_is_searched_as_it_stands(turns: ChatTurns) -> None:
    turns.ask("What does that cost?", history=LEAVE, rewrites=False)
    assert turns.web.queries == ["What does that cost?"]
    assert turns.searched == [["What does that cost?"]]


def test_an_index_that_fails_once_is_asked_again(turns: ChatTurns) -> None:
    turns.index = MemoryIndex(CORPUS, _fail_index(0))
    assert OWN in turns.ask(MESSAGE, plan=PLAN).text
    assert turns.lost == []


def test_an_index_that_fails_is_not_asked_again_for_what_needs_none(turns: ChatTurns) -> None:
    turns.index = MemoryIndex(CORPUS, _fail_index(0))
    assert LAW in turns.ask(MESSAGE, plan=write_plan("Danish leave law")).text
    assert len(turns.index.finds) == 1
    assert turns.lost == []


def test_knowledge_alone_fails_with_its_index(turns: ChatTurns) -> None:
    turns.index = MemoryIndex(CORPUS, _fail_index(0, 1))
    failed = turns.fail(MESSAGE, plan=PLAN, sides=KNOWLEDGE)
    assert "The search failed." in failed.message
    assert turns.state.snapshot().status is TurnStatus.FAILED


def test_an_index_that_is_late_is_not_waited_for_twice(turns: ChatTurns) -> None:
    def delay(_: int) -> None:
        raise DeadlineExceededError

    turns.index = MemoryIndex(CORPUS, delay)
    assert LAW in turns.ask(MESSAGE, plan=PLAN).text
    assert len(turns.index.finds) == 1


class _EngineWithQuotaOfOne(WordEngine):
    """Answers one search, and then has used up its quota."""

    def __init__(self) -> None:
        super().__init__(FOUND)
        self._asked = itertools.count()

    def __call__(self, request: ReceivedRequest) -> Response:
        if next(self._asked):
            return Response(status=429, headers={"Retry-After": "3600"})
        return super().__call__(request)


def test_another_provider_goes_on_in_mid_turn_and_the_steps_say_which(turns: ChatTurns) -> None:
    with serve(_EngineWithQuotaOfOne()) as exhausted, serve(WordEngine(FOUND)) as backup:
        turns.web.providers = (
            turns.web.make_provider(1, "first", exhausted.url),
            turns.web.make_provider(2, "second", backup.url),
        )
        done = turns.ask(
            MESSAGE, plan=write_plan("Danish leave law|leave weather", "parental leave")
        )
        findings = [one.finding for one in turns.of_kind(WebSearched)]
    assert LAW in done.text
    assert len(findings) == 3
    providers = [{result.provider for result in one.results} for one in findings]
    assert sorted(map(sorted, providers)) == [["first"], ["second"], ["second"]]
    assert all(one.answered_by.startswith("Tavily (") for one in findings)
    assert turns.lost == []


def test_a_provider_that_hangs_leaves_time_to_answer(turns: ChatTurns) -> None:
    released = threading.Event()
    turns.web.engine.before = lambda: released.wait(30)
    try:
        done = turns.ask(MESSAGE, plan=PLAN, deadline=Deadline.after(2))
    finally:
        released.set()
    assert OWN in done.text
    assert [one.finding.query for one in turns.of_kind(WebSearched)] == [
        MESSAGE,
        "Danish leave law",
    ]
    assert all(one.finding.problem for one in turns.of_kind(WebSearched))
    assert "\nNote: The" in turns.prompt


def test_a_plan_that_is_late_is_not_waited_for(
    turns: ChatTurns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intent_step, "INTENT_SECONDS", 0.5)
    turns.server.plan = lambda _: Silent()
    deadline = Deadline.after(60)
    done = turns.ask(MESSAGE, deadline=deadline)
    assert deadline.remaining() > 30
    assert "intent" in turns.lost
    assert turns.web.queries == [MESSAGE]
    assert OWN in done.text
    assert LAW in done.text


def test_a_plan_that_fails_costs_itself_alone(turns: ChatTurns) -> None:
    turns.server.plan = lambda _: Refuse(400, "too long")
    assert LAW in turns.ask(MESSAGE).text
    assert turns.lost == ["intent"]


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ("/status/404", "There is no page at this address of news.test (status 404)."),
        ("/walls/empty", "news.test sent a page without any text."),
    ],
)
def test_a_page_that_cannot_be_read_is_named(turns: ChatTurns, path: str, note: str) -> None:
    url = turns.web.pages.url(path)
    plan = f"<websearch><question>summarize</question><links>{url}</links></websearch>"
    turns.ask(f"Sum up {url}", plan=plan, sides=WEB)
    assert turns.prompt == f"Sum up {url}"
    assert note in turns.answering.messages[0]["content"]
    assert len(turns.of_kind(PagesRead)) == 1


def test_pages_that_come_too_late_are_named(turns: ChatTurns) -> None:
    links = (LinkToRead(turns.web.pages.url("/en/pool")),)
    late = start_web_lookup(
        turns.web.session(), Searches(Asked("x"), SwitchedOff(), links), 1_000, Deadline.after(0)
    )
    events, found = _follow(late.follow(DocumentNumbers()))
    assert found.references == ()
    assert any("takes too long" in note for note in found.notes)
    [read] = [one for one in events if isinstance(one, PagesRead)]
    assert isinstance(read.pages[0], UnreadablePage)


def test_a_page_that_is_slow_costs_itself_alone(turns: ChatTurns) -> None:
    slow, quick = turns.web.pages.url("/slow/silent"), turns.web.pages.url("/en/pool")
    plan = Searches(Asked("tidal pool"), SwitchedOff(), (LinkToRead(slow), LinkToRead(quick)))
    lookup = start_web_lookup(turns.web.session(), plan, 4_000, Deadline.after(3))
    events, found = _follow(lookup.follow(DocumentNumbers()))
    [read] = [one for one in events if isinstance(one, PagesRead)]
    assert [type(one) for one in read.pages] == [UnreadablePage, WebPage]
    assert [one.document.title for one in found.references] == ["A tidal pool"]
    assert found.notes == ("news.test takes too long to answer.",)


def test_a_page_that_is_linked_twice_is_one_reference(turns: ChatTurns) -> None:
    url = turns.web.pages.url("/en/pool")
    links = (LinkToRead(url), LinkToRead(f"{url}?utm_source=mail"))
    plan = Searches(Asked("tidal pool"), SwitchedOff(), links)
    lookup = start_web_lookup(turns.web.session(), plan, 4_000, Deadline.after(10))
    _, found = _follow(lookup.follow(DocumentNumbers()))
    assert [(one.number, one.document.title) for one in found.references] == [(1, "A tidal pool")]


def test_what_does_not_end_in_time_is_named() -> None:
    """However little of the time the searches and the reading keep to themselves."""
    released = threading.Event()
    over = Deadline.after(0)

    def hang() -> Any:
        released.wait(10)

    read = RunningRead("https://a.example/x", run_in_background(hang, over))
    assert read.result() == UnreadablePage(
        "https://a.example/x", "a.example takes too long to answer."
    )
    search = RunningSearch(AllowedQuery("Lyon"), run_in_background(hang, over))
    assert (search.result().query, search.result().results) == ("Lyon", ())
    assert search.result().problem == "There was no time left to search the web."
    released.set()


def _follow(
    steps: Generator[ChatEvent, None, WebReferences],
) -> tuple[list[ChatEvent], WebReferences]:
    events: list[ChatEvent] = []

    def run() -> Generator[ChatEvent, None, None]:
        found.append((yield from steps))

    found: list[WebReferences] = []
    events.extend(run())
    return events, found[0]


@pytest.mark.parametrize("room", [300, 1_000, 4_000])
@pytest.mark.parametrize(
    "sentence", ["四万张老照片在仓库里躺了三十年。", "The pool is late again. "]
)
def test_a_long_page_is_cut_to_its_room_in_any_script(
    turns: ChatTurns, sentence: str, room: int
) -> None:
    session, url = turns.web.session(), turns.web.pages.url("/long")
    session.cache.keep_page(url, WebPage(url, "Photos", sentence * 2_000, None, None))
    plan = Searches(Asked("photos 老照片 pool"), SwitchedOff(), (LinkToRead(url),))
    lookup = start_web_lookup(session, plan, room, Deadline.after(10))
    _, found = _follow(lookup.follow(DocumentNumbers()))
    [page] = fit_references(found.references[:1], room, estimated_tokens)
    assert len(page.content) > room // 5


def _wait_for_end(before: set[threading.Thread]) -> list[str]:
    """The names of threads that a turn has started and that go on."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        left = [one.name for one in set(threading.enumerate()) - before if not _serves(one)]
        if not left:
            return []
        time.sleep(0.02)
    return left


def _serves(thread: threading.Thread) -> bool:
    """Whether it is one of the servers of the tests, or the one thread of the process that keeps time."""
    serves = "process_request_thread" in thread.name or "serve_forever" in thread.name
    return serves or thread.name == "timers"


def test_a_turn_whose_reader_goes_away_ends_with_its_model(turns: ChatTurns) -> None:
    parts = turns.make_parts()
    before = set(threading.enumerate())
    answer = Say(["Danish law "] * 9, manner=Manner(stall_after=4))
    turns.server.play(lambda request: answer if request.answers else answer_from_sources(request))
    stream = turns.start(MESSAGE, plan=PLAN, parts=parts)
    assert next(one.text for one in stream if isinstance(one, TextPiece)).startswith("Danish")
    stream.close()  # type: ignore[attr-defined]
    assert turns.server.hung_up.wait(10)
    assert turns.state.snapshot().status is TurnStatus.STOPPED
    assert _wait_for_end(before) == []


def test_a_turn_that_is_closed_while_it_looks_up_leaves_nothing_running(turns: ChatTurns) -> None:
    parts = turns.make_parts()
    before = set(threading.enumerate())
    asked = threading.Event()

    def hang(_: Request) -> Reply:
        asked.set()
        return Silent()

    turns.server.plan = hang
    stream = turns.start(MESSAGE, parts=parts)
    next(stream)
    assert asked.wait(10)
    stream.close()  # type: ignore[attr-defined]
    assert turns.server.hung_up.wait(10)
    assert _wait_for_end(before) == []
    assert turns.web.queries == []


def test_a_turn_that_is_cancelled_ends_its_search_of_the_web(turns: ChatTurns) -> None:
    asked, released, token = threading.Event(), threading.Event(), CancelToken()

    def hang() -> None:
        asked.set()
        released.wait(30)

    turns.web.engine.before = hang
    parts = turns.make_parts()
    before = set(threading.enumerate())
    deadline = Deadline.after(30, token)
    began = time.monotonic()
    runs = threading.Thread(
        target=lambda: turns.run(MESSAGE, plan=PLAN, parts=parts, deadline=deadline)
    )
    runs.start()
    assert asked.wait(10)
    token.cancel()
    runs.join(10)
    assert time.monotonic() - began < 10
    assert isinstance(turns.events[-1], TurnFailed)
    assert _wait_for_end(before) == []
    released.set()


MANY = tuple(
    chunk(f"kb:{n}", 0, f"Parental leave of team {n} is {n} weeks. " + "It is paid in full. " * 20)
    for n in range(8)
)


def _prompt_tokens(request: Request) -> int:
    return sum(estimated_tokens(str(one["content"])) for one in request.messages)


@pytest.mark.parametrize("window", [1_200, 1_400, 1_700, 2_000, 2_600, 4_000, 9_000])
@pytest.mark.parametrize("sides", [KNOWLEDGE, WEB, BOTH_SIDES])
def test_what_the_model_is_shown_fits_its_window(
    turns: ChatTurns, window: int, sides: frozenset[Side]
) -> None:
    turns.index, turns.window = MemoryIndex(MANY), window
    file = ContextFile(
        document_id="file:1", name="Plan", text="Leave is planned. " * (window // 60)
    )
    done = turns.run(MESSAGE, plan=PLAN, sides=sides, files=(file,))
    if isinstance(done, TurnFailed):
        assert "too long for the language model" in done.message
        assert window < 2_000
        return
    assert _prompt_tokens(turns.answering) <= window * 3 // 4
    types = [kind for _, kind in turns.shown]
    assert types[0] == "file"
    if window > 2_000:
        assert ("document" in types) == (Side.KNOWLEDGE in sides)
        assert ("url" in types) == (Side.WEB in sides)


@pytest.mark.parametrize(("sides", "guesses"), [(KNOWLEDGE, False), (BOTH_SIDES, True)])
def test_where_the_documents_say_nothing_the_rule_of_the_sides_holds(
    turns: ChatTurns, sides: frozenset[Side], *, guesses: bool
) -> None:
    turns.index = MemoryIndex(CORPUS, partial=True)
    turns.ask("Xyzzy?", plan=write_plan(knowledge="Xyzzy"), sides=sides)
    told = turns.answering.messages[0]["content"]
    assert ("do not guess" in told) != guesses
    assert ("say nothing that helps here" in told) == guesses
    assert "Part of the index did not answer" in told


def test_a_message_that_fills_the_window_needs_room_only_to_be_looked_up(turns: ChatTurns) -> None:
    turns.window = 1_200
    long = "Say this in German: " + "the leave is long and paid in full " * 50
    assert "too long" in turns.fail(long, plan=write_plan()).message
    assert turns.ask(long, sides=frozenset()).text
    assert turns.prompt == long


def test_where_nothing_fits_that_is_said(turns: ChatTurns) -> None:
    long = chunk("kb:long", 0, "Parental leave " * 120)
    turns.index, turns.window = MemoryIndex((long,)), 1_200
    turns.ask(MESSAGE, plan=write_plan(knowledge="parental leave"), sides=KNOWLEDGE)
    assert turns.prompt == MESSAGE
    assert "There is no room for results." in turns.answering.messages[0]["content"]


def _only(name: str) -> Callable[[Request], Reply]:
    """A model of this name answers; another is down."""

    def reply(request: Request) -> Reply:
        is_down = request.answers and request.body["model"] != name
        return Refuse(503, "down") if is_down else answer_from_sources(request)

    return reply


def test_another_model_is_shown_what_its_window_holds(turns: ChatTurns) -> None:
    turns.index = MemoryIndex(MANY)
    turns.server.play(_only("small"))
    small = turns.make_model(3_000, "small")
    parts = replace(turns.make_parts(), fallback=small)
    done = turns.ask(MESSAGE, plan=PLAN, parts=parts)
    first, last = [one for one in turns.server.requests if one.answers][-2:]
    assert len(last.sources) < len(first.sources)
    shown = [(one["number"], one["title"]) for one in first.sources]
    assert [(one["number"], one["title"]) for one in last.sources] == shown[: len(last.sources)]
    assert _prompt_tokens(last) <= 2_250
    assert done.model == "small"
    assert done.citations


def test_another_model_that_does_not_see_is_shown_no_picture(turns: ChatTurns) -> None:
    turns.server.play(_only("blind"))
    parts = turns.make_parts(turns.make_model(32_000, sees_pictures=True))
    parts = replace(parts, fallback=turns.make_model(32_000, "blind"))
    picture = Picture("file:pic", "law.png", "image/png", b"\x89PNG")
    turns.ask(MESSAGE, plan=PLAN, parts=parts, pictures=(picture,))
    first, last = [one for one in turns.server.requests if one.answers][-2:]
    assert [one["type"] for one in first.sources][-1] == "image"
    assert "image" not in [one["type"] for one in last.sources]
    assert "law.png" not in last.text


def test_files_that_are_searched_are_searched_whatever_the_plan_says(turns: ChatTurns) -> None:
    """The model that plans is not told of files."""
    turns.window = 4_000
    file = ContextFile(document_id="kb:leave", name="Leave", text="parental leave " * 2_000)
    done = turns.ask("Sum up the attached leave policy", plan=write_plan(), files=(file,))
    assert OWN in done.text
    [planned] = turns.of_kind(SearchPlanned)
    assert isinstance(planned.plan.knowledge, Asked)


def test_files_that_are_too_long_need_knowledge(turns: ChatTurns) -> None:
    turns.window = 4_000
    file = ContextFile(document_id="kb:leave", name="Leave", text="parental leave " * 2_000)
    failed = turns.fail(MESSAGE, sides=WEB, files=(file,))
    assert "too long for the language model to read whole" in failed.message


def test_a_model_that_says_nothing_has_given_no_answer(turns: ChatTurns) -> None:
    turns.server.play(lambda request: Say("") if request.answers else answer_from_sources(request))
    failed = turns.fail(MESSAGE, plan=PLAN)
    assert failed.by_model
    assert "gave no answer" in failed.message


def test_pages_of_the_web_are_shown_without_their_provider(turns: ChatTurns) -> None:
    turns.ask(MESSAGE, plan=PLAN, sides=WEB)
    assert [one["sourceUrl"] for one in turns.answering.sources] == [DENMARK]
    assert "Tavily" not in turns.prompt
    assert {one.finding.receivers for one in turns.of_kind(WebSearched)} == {
        ("Tavily (127.0.0.1)",)
    }
