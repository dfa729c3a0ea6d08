"""Whole turns in Chat mode: what is looked up for a message, what the model is shown of it, and what becomes of its answer."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from backend.chat.events import SearchPlanned
from backend.chat.intent.search_plan import Side
from backend.search.llm_protocol import ChatMessage
from tests.support.chat_turns import (
    FOUND,
    GENERAL,
    KEYWORDS,
    NOT_SAID,
    ChatTurns,
    write_plan,
)
from tests.support.open_web import open_web
from tests.support.scripted_model import ScriptedModel
from tests.support.sides import BOTH_SIDES

KNOWLEDGE = frozenset({Side.KNOWLEDGE})
WEB = frozenset({Side.WEB})
NONE: frozenset[Side] = frozenset()

LEAVE = "How does our parental leave compare with the law in Denmark?"
LYON = "Will it rain in Lyon tomorrow, and who won the match?"
TRAVEL = "Who approves travel abroad, and when are receipts handed in?"
OWN, LAW, ASKED = "parental leave we give", "Danish leave law", "Our parental leave and Danish law"
POOL, BRIDGE = "{web}/en/pool", "{web}/ru/bridge"
SAYS_LEAVE = "Our parental leave lasts 14 weeks [["
SAYS_DENMARK = "Danish law gives parents 24 weeks of leave each [["
SAYS_TRAVEL, SAYS_RECEIPTS = "The team lead approves travel abroad [[", "within 30 days [["
SAYS_POOL = "A tidal pool [["
POOL_PLAN = (
    f"<websearch><question>tidal pool</question><links>{POOL}</links></websearch>"
    "<knowledge><question>not_needed</question></knowledge>"
)
SUMMARY_PLAN = (
    f"<websearch><question>summarize</question><links>{POOL}</links><links>{BRIDGE}</links></websearch>"
    "<knowledge><question>not_needed</question></knowledge>"
)


@pytest.fixture(scope="module")
def web_and_model() -> Iterator[ChatTurns]:
    with ScriptedModel() as server, open_web(FOUND) as web:
        yield ChatTurns(server, web)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`{web}` stands for the local web.

    Attributes:
        plan: What the intent step answers; nothing for a model that says nothing.
        sent: What the provider of web search was sent.
        asked: What the index was asked besides the message; None where it was not asked at all.
        shown: The types of the references, in the order of their numbers.
        pages: The paths of the pages that were read.
        planned: How often a plan was asked for.
    """

    message: str
    plan: str = ""
    sides: frozenset[Side] = BOTH_SIDES
    rewrites: bool = True
    history: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = ()
    shown: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    is_general: bool = False
    planned: int = 1


SCENARIOS = {
    "both sides": Scenario(
        message=LEAVE,
        plan=write_plan(LAW, OWN, ASKED),
        sent=(LAW, LEAVE),
        asked=(ASKED, OWN),
        shown=("url", "document"),
        says=(SAYS_DENMARK, SAYS_LEAVE),
    ),
    "a greeting": Scenario(
        message="Guten Morgen!", asked=None, says=(GENERAL,), planned=0, is_general=True
    ),
    "a greeting that only the model knows": Scenario(
        message="Grüezi mitenand", plan=write_plan(), says=(GENERAL,), is_general=True
    ),
    "a greeting with a question": Scenario(
        message="Hello! How long is parental leave?",
        plan=write_plan(knowledge="parental leave", rewrite="How long is parental leave?"),
        asked=("How long is parental leave?", "parental leave"),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
    "a definition": Scenario(
        message="什么是零信任网络？",
        plan=write_plan("零信任网络 定义", "零信任网络是什么", "什么是零信任网络？"),
        sent=("什么是零信任网络？", "零信任网络 定义"),
        asked=("零信任网络是什么",),
        shown=("url", "document"),
        says=("零信任网络默认不信任任何请求 [[1]]",),
    ),
    "one link": Scenario(
        message=f"Why is the tidal pool of {POOL} late?",
        plan=POOL_PLAN,
        sent=(f"Why is the tidal pool of {POOL} late?", "tidal pool"),
        shown=("url",),
        says=(SAYS_POOL, "[[1]]({web}/en/pool)"),
        pages=("/en/pool",),
    ),
    "several links to summarise": Scenario(
        message=f"Sum up {POOL} and {BRIDGE}: the pool, мост",
        plan=SUMMARY_PLAN,
        shown=("url", "url"),
        says=(SAYS_POOL, "[[2]]({web}/ru/bridge)"),
        pages=("/en/pool", "/ru/bridge"),
    ),
    "two questions to the web": Scenario(
        message=LYON,
        plan=write_plan("weather Lyon|match Lyon"),
        sent=(LYON, "match Lyon", "weather Lyon"),
        shown=("url", "url"),
        says=("Tomorrow it rains in Lyon [[", "Lyon won the match 2:1 yesterday [["),
    ),
    "two questions to knowledge": Scenario(
        message=TRAVEL,
        plan=write_plan(knowledge="Who approves travel?|When are receipts due?", rewrite="R?"),
        asked=("R?", "Who approves travel?", "When are receipts due?"),
        shown=("document", "document"),
        says=(SAYS_TRAVEL, SAYS_RECEIPTS),
    ),
    "a text to write": Scenario(
        message="Write a poem on parental leave in Denmark",
        plan=write_plan(),
        says=(GENERAL,),
        is_general=True,
    ),
    "the web is not needed": Scenario(
        message=LEAVE,
        plan=write_plan(knowledge=OWN),
        asked=(OWN,),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
    "knowledge is not needed": Scenario(
        message=LEAVE,
        plan=write_plan(LAW),
        sent=(LAW, LEAVE),
        shown=("url",),
        says=(SAYS_DENMARK,),
    ),
    "not needed, in Chinese": Scenario(
        message="请把“你好，世界”翻译成法语",
        plan=write_plan("不需要", "无需检索"),
        says=(GENERAL,),
        is_general=True,
    ),
    "web off": Scenario(
        message=LEAVE,
        plan=write_plan(LAW, OWN),
        sides=KNOWLEDGE,
        asked=(OWN,),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
    "web off, and the plan asks nothing else": Scenario(
        message=LEAVE, plan=write_plan(LAW), sides=KNOWLEDGE, says=(NOT_SAID,)
    ),
    "web off, with a link": Scenario(
        message=f"Sum up {POOL}", plan=SUMMARY_PLAN, sides=KNOWLEDGE, says=(NOT_SAID,)
    ),
    "knowledge off": Scenario(
        message=LEAVE,
        plan=write_plan(LAW, OWN),
        sides=WEB,
        sent=(LAW, LEAVE),
        asked=None,
        shown=("url",),
        says=(SAYS_DENMARK,),
    ),
    "both off": Scenario(
        message=LEAVE, sides=NONE, asked=None, says=(GENERAL,), planned=0, is_general=True
    ),
    "both off, a link": Scenario(
        message=f"Sum up {POOL}",
        sides=NONE,
        asked=None,
        says=(GENERAL,),
        planned=0,
        is_general=True,
    ),
    "without rewriting": Scenario(
        message=LEAVE,
        rewrites=False,
        sent=(LEAVE,),
        shown=("url", "document"),
        says=(SAYS_DENMARK, SAYS_LEAVE),
        planned=0,
    ),
    "without rewriting, the web alone": Scenario(
        message=LYON,
        rewrites=False,
        sides=WEB,
        sent=(LYON,),
        asked=None,
        shown=("url", "url"),
        says=("Tomorrow it rains in Lyon [[1]]", "yesterday [[2]]"),
        planned=0,
    ),
    "without rewriting, knowledge alone": Scenario(
        message=TRAVEL,
        rewrites=False,
        sides=KNOWLEDGE,
        shown=("document", "document"),
        says=(SAYS_TRAVEL, SAYS_RECEIPTS),
        planned=0,
    ),
    "without rewriting, a greeting": Scenario(
        message="谢谢！", rewrites=False, asked=None, says=(GENERAL,), planned=0, is_general=True
    ),
    "without rewriting, a link": Scenario(
        message=f"Why is {POOL} late?",
        rewrites=False,
        sides=WEB,
        sent=(f"Why is {POOL} late?",),
        asked=None,
        shown=("url",),
        pages=("/en/pool",),
        planned=0,
    ),
    "from the web": Scenario(
        message="From the web: how long is parental leave in Denmark?",
        plan=write_plan(LAW, OWN),
        sent=(LAW, "From the web: how long is parental leave in Denmark?"),
        shown=("url",),
        says=(SAYS_DENMARK,),
    ),
    "from the web, which the plan does not ask": Scenario(
        message="Search the web for parental leave in Denmark",
        plan=write_plan(knowledge=OWN),
        sent=("Search the web for parental leave in Denmark",),
        shown=("url",),
        says=(SAYS_DENMARK,),
    ),
    "in our documents": Scenario(
        message="How long is parental leave in our documents?",
        plan=write_plan(LAW, OWN),
        asked=(OWN,),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
    "according to the knowledge base, in Chinese": Scenario(
        message="根据知识库，远程办公每周几天？",
        plan=write_plan("远程办公", "远程办公 天数"),
        asked=("远程办公 天数",),
        shown=("document",),
        says=("远程办公每周最多两天 [[1]]",),
    ),
    "not the web": Scenario(
        message="How long is parental leave? Do not search the web.",
        plan=write_plan(LAW, OWN),
        asked=(OWN,),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
    "from the web, which is off": Scenario(
        message="From the web: how long is parental leave?",
        plan=write_plan(LAW, OWN),
        sides=KNOWLEDGE,
        asked=(OWN,),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
    "a plan that is none": Scenario(
        message=LEAVE,
        plan="I am sorry, I cannot help with that.",
        sent=(LEAVE,),
        shown=("url", "document"),
        says=(SAYS_DENMARK, SAYS_LEAVE),
    ),
    "an empty plan": Scenario(
        message=LEAVE, sent=(LEAVE,), shown=("url", "document"), says=(SAYS_DENMARK, SAYS_LEAVE)
    ),
    "half a plan": Scenario(
        message=LEAVE,
        plan=f"<websearch><question>{LAW}</question></websearch><knowledge><rewr",
        sent=(LAW, LEAVE),
        shown=("url", "document"),
        says=(SAYS_DENMARK, SAYS_LEAVE),
    ),
    "a plan in a fence, with prose": Scenario(
        message=LEAVE,
        plan=f"Here you are:\n```xml\n{write_plan(LAW, OWN, ASKED)}\n```\nI hope this helps.",
        sent=(LAW, LEAVE),
        asked=(ASKED, OWN),
        shown=("url", "document"),
    ),
    "a plan with entities": Scenario(
        message=LEAVE,
        plan=write_plan("law &amp; leave in Denmark").replace("<", "&lt;").replace(">", "&gt;"),
        sent=(LEAVE, "law & leave in Denmark"),
        shown=("url",),
    ),
    "a plan whose blocks come twice": Scenario(
        message=LEAVE,
        plan=write_plan(LAW, OWN) * 2,
        sent=(LAW, LEAVE),
        asked=(OWN,),
        shown=("url", "document"),
    ),
    "a plan without wrappers": Scenario(
        message=LEAVE,
        plan="<question>Danish law</question>",
        sent=("Danish law", LEAVE),
        asked=("Danish law",),
        shown=("url", "document"),
    ),
    "the message as the question": Scenario(
        message=LEAVE,
        plan=write_plan(LEAVE.upper(), LEAVE, LEAVE),
        sent=(LEAVE,),
        shown=("url", "document"),
    ),
    "an address that the model made up": Scenario(
        message=f"Why is the tidal pool of {POOL} late?",
        plan=POOL_PLAN.replace("/en/pool", "/en/frame"),
        sent=(f"Why is the tidal pool of {POOL} late?", "tidal pool"),
        shown=("url",),
        pages=("/en/pool",),
    ),
    "to summarise what is no link": Scenario(
        message="Sum up parental leave",
        plan=write_plan("summarize", OWN),
        sent=("Sum up parental leave",),
        asked=(OWN,),
        shown=("url", "document"),
    ),
    "to summarise, and our documents": Scenario(
        message=f"Sum up {POOL}, and say what holds for parental leave in our documents",
        plan=SUMMARY_PLAN,
        shown=("url", "document"),
        pages=("/en/pool",),
    ),
    "a link that was read before": Scenario(
        message=f'Why is it late? <url id="1" status="parsed" title="A tidal pool">{POOL}</url>',
        plan=write_plan().replace(
            "</question></websearch>", f"</question><links>{POOL}</links></websearch>"
        ),
        shown=("url",),
        pages=("/en/pool",),
    ),
    "a link that failed before is read anew": Scenario(
        message=f'Why is it late? <url id="1" status="failed">{POOL}</url>',
        plan=write_plan().replace(
            "</question></websearch>", f"</question><links>{POOL}</links></websearch>"
        ),
        shown=("url",),
        pages=("/en/pool",),
    ),
    "one page under two addresses": Scenario(
        message=f"Why are {POOL} and {POOL}#tides late?",
        plan=SUMMARY_PLAN.replace(BRIDGE, f"{POOL}#tides"),
        shown=("url",),
        pages=("/en/pool", "/en/pool"),
    ),
    "a follow-up": Scenario(
        message="And in Denmark?",
        history=("How long is parental leave?", "It lasts 14 weeks [1]."),
        plan=write_plan("parental leave Denmark", "leave Denmark", "How long is leave in Denmark?"),
        sent=("And in Denmark?", "parental leave Denmark"),
        asked=("How long is leave in Denmark?", "leave Denmark"),
        shown=("url", "document"),
        says=("Danish law gives",),
    ),
    "nothing is found": Scenario(
        message="Xyzzy plugh?",
        plan=write_plan("Xyzzy", "Xyzzy"),
        sent=("Xyzzy", "Xyzzy plugh?"),
        asked=("Xyzzy",),
        says=(GENERAL,),
        is_general=True,
    ),
    "nothing is found in knowledge alone": Scenario(
        message="Xyzzy plugh?",
        plan=write_plan("Xyzzy", "Xyzzy"),
        sides=KNOWLEDGE,
        asked=("Xyzzy",),
        says=(NOT_SAID,),
    ),
    "none that is found is relevant": Scenario(
        message="Xyzzy plugh?",
        plan=write_plan("match Lyon"),
        sent=("Xyzzy plugh?", "match Lyon"),
        shown=("url", "url"),
        says=(GENERAL,),
        is_general=True,
    ),
    "a message that says nothing": Scenario(
        message="\u200b \u200b", asked=None, says=(GENERAL,), planned=0, is_general=True
    ),
    "a long message": Scenario(
        message="leave " * 100,
        plan=write_plan(LAW),
        sent=(LAW, ("leave " * 67)[:400].strip()),
        shown=("url",),
    ),
    "many questions": Scenario(
        message=LYON,
        plan=write_plan("match one|match two|match three|match four|match five"),
        sent=(LYON, "match four", "match one", "match three", "match two"),
        shown=("url", "url"),
    ),
    "hidden documents": Scenario(
        message="How long is parental leave of directors?",
        plan=write_plan(knowledge="leave of directors"),
        asked=("leave of directors",),
        shown=("document",),
        says=(SAYS_LEAVE,),
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_turn_looks_up_what_its_message_needs(
    web_and_model: ChatTurns, scenario: Scenario
) -> None:
    server, web = web_and_model.server, web_and_model.web
    fill_in = web.pages.fill_in
    for log in (server.requests, server.planned, web.service.log, web.pages.requests):
        log.clear()
    server.plan = fill_in(scenario.plan)
    turns = ChatTurns(server, web)
    message = fill_in(scenario.message)
    roles = ("user", "assistant")
    history = [ChatMessage(roles[at % 2], text) for at, text in enumerate(scenario.history)]  # type: ignore[arg-type]
    done = turns.ask(
        message, sides=scenario.sides, rewrites=scenario.rewrites, history=tuple(history)
    )
    turns.close()

    assert web.queries == sorted(map(fill_in, scenario.sent))
    assert sorted(web.pages.requests) == sorted(scenario.pages)
    texts = [text for call in turns.searched for text in call]
    if scenario.asked is None:
        assert texts == []
    else:
        assert texts[:1] == [" ".join(message.split())]
        assert [one for one in texts[1:] if one != KEYWORDS] == list(scenario.asked)
    numbers, types = [number for number, _ in turns.shown], [kind for _, kind in turns.shown]
    assert numbers == list(range(1, len(numbers) + 1))
    # Of few documents that are found, all are shown.
    assert [kind for kind in types if kind == "url"] == [
        one for one in scenario.shown if one == "url"
    ]
    assert list(dict.fromkeys(types)) == list(dict.fromkeys(scenario.shown))
    if not scenario.shown:
        assert turns.prompt == message
    for said in scenario.says:
        assert fill_in(said) in done.text
    assert done.text == turns.text
    assert done.is_general_knowledge == scenario.is_general
    assert len(server.planned) == scenario.planned
    assert len(turns.of_kind(SearchPlanned)) == bool(scenario.sides)
    assert "kb:board" not in str(turns.events)
    assert {one.number for one in done.citations} <= set(numbers)
