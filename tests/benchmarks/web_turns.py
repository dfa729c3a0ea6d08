"""How long turns with the web take, over the slower search and the model's own time; pages in parallel; a cached search.

    .venv/bin/python -m tests.benchmarks.web_turns [--rounds N]

The product's own parts on the sample handbook: its index and embedding model, its database, a provider of web search over
its HTTP protocol, pages over HTTP, and a scripted model behind its real protocol. The provider answers after 300 ms, each
page after 1 s, each call of the model after 1 s. Medians of the rounds; of each, in the same run:

- A turn in Chat mode with the web and company knowledge, over the slower of both look-ups, each run alone, and the two calls
  that are the model's own: the plan and the answer. The choice among sections is a call of the search. Also with a page to
  read, and with documents so few that the model chooses none. Wanted: 1.15 at most.
- Eight pages read at once, over the slowest of them read alone. Wanted: 1.3 at most.
- A search that the session has cached in the database, over one that it has not. Wanted: 0.02 at most.

The command exits with 1 if one is missed.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone
from backend.chat.intent.message_links import find_links
from backend.chat.intent.search_plan import Queries, Searches, SwitchedOff, plan_variants
from backend.chat.llm.client import make_complete
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import ChatMode
from backend.chat.web_lookup import start_web_lookup
from backend.composition.web_search import WebSessions
from backend.container import Container
from backend.search.events import SearchEvent
from backend.search.models import DocumentNumbers, SearchRequest
from backend.search.search_tool import StartedSearch, start_keyword_expansion
from backend.settings import Settings
from backend.store.accounts.people import NOBODY
from backend.store.audit import OWNER
from backend.store.owner import ConversationOwner
from backend.store.web_cache import CachedSession
from backend.web_search.domains import ANY_DOMAIN
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from backend.web_search.results import WebPage
from backend.web_search.service import RulesChange
from backend.web_search.web_session import WebSession
from connectors.access import Readers
from connectors.http_client.address_guard import AllowedNetworks
from indexing.embedding.language_support import EmbedderWithLanguages
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline
from tests.benchmarks.first_token import build_home
from tests.contract.provider_worlds.world import SECRET, Item
from tests.support.conversations import begin
from tests.support.models import MODEL_CACHE
from tests.support.open_web import WordEngine
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.services.serving import ReceivedRequest, RunningService, reply_text, serve
from tests.support.services.serving import Reply as HttpReply
from tests.support.sides import BOTH_SIDES
from tests.support.web_pages import texts

PROVIDER_SECONDS, PAGE_SECONDS, MODEL_SECONDS = 0.3, 1.0, 1.0
TURN_BAR, PAGES_BAR, CACHE_BAR = 1.15, 1.3, 0.02
PAGE_HOST = "pages.test"
QUESTION = "How many weeks of paid parental leave are there, and how many in Denmark?"
ASKED = ("weeks of paid parental leave", "parental leave in Denmark")
FEW = Filters(sources=frozenset({"nothing"}))
"""Accept nothing, so that there is nothing to choose among."""
FOUND = [
    Item(f"Parental leave in Denmark, {n}", f"https://law{n}.example/dk", "Parents have 24 weeks.")
    for n in range(8)
]


def answer(request: Request) -> Reply:
    time.sleep(MODEL_SECONDS)
    if request.answers:
        first = request.sources[0]
        return Say(f"It is said there [{first['number']}].")
    if request.text.count('"id":') > 1:
        return Say(json.dumps({"sections": [{"id": n, "read": "adjacent"} for n in range(3)]}))
    return Say("weeks leave")


def plan(request: Request) -> Reply:
    time.sleep(MODEL_SECONDS)
    message = json.loads(request.messages[-1]["content"])["last_message"]
    links = "".join(f"<links>{link.url}</links>" for link in find_links(message))
    return Say(
        f"<websearch><question>{ASKED[1]}</question>{links}</websearch>"
        f"<knowledge><rewrite>{ASKED[0]}, and in Denmark</rewrite><question>{ASKED[0]}</question></knowledge>"
    )


def send_page(request: ReceivedRequest) -> HttpReply:
    time.sleep(PAGE_SECONDS)
    body = "".join(f"<p>{text}</p>" for text in (*texts.EN, *texts.EN, *texts.EN))
    title = f"A tidal pool {request.path}"
    page = f"<html><head><title>{title}</title></head><body><article><h1>{title}</h1>{body}</article></body></html>"
    return reply_text(page, media_type="text/html")


@dataclass
class World:
    container: Container
    web: WebSessions
    pages: RunningService
    model: ScriptedModel
    engine: WordEngine
    misses: list[str] = field(default_factory=list)

    def page(self, number: int) -> str:
        return f"http://{PAGE_HOST}:{self.pages.port}/{number}-{time.monotonic_ns()}"

    @contextmanager
    def session(self, cached: CachedSession | None = None) -> Iterator[WebSession]:
        with self.web.open(cached, ANY_DOMAIN) as session:
            assert session is not None
            yield session

    def report(self, name: str, ratio: float, bar: float, detail: str) -> None:
        print(f"{name:44} {ratio:.3f} (at most {bar}): {detail}")
        if ratio > bar:
            self.misses.append(name)


@contextmanager
def open_world(folder: Path) -> Iterator[World]:
    home = build_home(folder)
    engine = WordEngine(FOUND)
    engine.before = lambda: time.sleep(PROVIDER_SECONDS)
    with ScriptedModel(answer) as model, serve(engine) as desk, serve(send_page) as pages:
        model.plan = plan
        settings = Settings(
            home=home.path / "state",
            models=MODEL_CACHE,
            llm_url=model.base_url,
            llm_model="scripted",
        )
        container = Container(settings)
        service = container.web.service(OWNER)
        service.add("tavily", engine.settings(desk.url), {"key": SECRET}, "desk")
        service.change_rules(RulesChange(is_on=True))
        fetcher = PageFetcher(AllowedNetworks(hosts=frozenset({PAGE_HOST})), _resolve)
        embedding = container.engine.embedding
        web = WebSessions(
            container.web.search,
            lambda: PageReader(fetcher),
            lambda: container.database,
            lambda: EmbedderWithLanguages(embedding.embedder, embedding.language_support),
        )
        yield World(container, web, pages, model, engine)
        container.close()


def _resolve(host: str, port: int) -> list[str]:
    del port
    if host != PAGE_HOST:
        raise OSError(f"{host} has no address")
    return ["127.0.0.1"]


def measure(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def run_turn(world: World, message: str, filters: Filters) -> None:
    turn = ChatTurn(
        message=message,
        readers=Readers.of(),
        deadline=Deadline.after(60),
        person_id=NOBODY,
        filters=filters,
        mode=ChatMode(BOTH_SIDES),
    )
    chat = replace(world.container.chat, find_web=lambda: world.web)
    *_, done = chat.answer(turn, (), ChatStateContainer())
    assert isinstance(done, AnswerDone), done
    assert done.citations
    kinds = {one.kind.value for one in done.documents}
    assert kinds == ({"url", "document"} if filters == Filters() else {"url"}), kinds


def look_up_web(world: World, message: str) -> None:
    asked = Queries(message, (ASKED[1],))
    searched = Searches(asked, SwitchedOff(), find_links(message))
    with world.session() as session:
        steps = start_web_lookup(session, searched, 4_000, Deadline.after(60)).follow(
            DocumentNumbers()
        )
        assert [*steps]


def look_up_knowledge(world: World, message: str, filters: Filters) -> float:
    """Search as a turn does; return the seconds from the moment at which its plan is there."""
    chat = world.container.chat
    models = world.container.language_models.choose()
    assert models is not None
    complete = make_complete(models.fast)
    tool = chat.search.tool(complete, DocumentNumbers())
    request = SearchRequest(
        message=message,
        readers=Readers.of(),
        deadline=Deadline.after(60),
        budgets=chat.budgets,
        filters=filters,
    )
    planned = plan_variants(Queries(message, (ASKED[0],), f"{ASKED[0]}, and in Denmark"))
    calls = start_keyword_expansion(request, complete)
    started = finish(tool.start(request, calls=calls))
    # The keywords are written beside the plan.
    for call in calls.values():
        call.result()
    return measure(lambda: list(tool.complete(started, request, planned)))


def finish(steps: Generator[SearchEvent, None, StartedSearch]) -> StartedSearch:
    """Run the steps without anyone reading their events."""

    def run() -> Iterator[SearchEvent]:
        started.append((yield from steps))

    started: list[StartedSearch] = []
    list(run())
    return started[0]


def measure_turn(world: World, rounds: int, name: str, message: str, filters: Filters) -> None:
    turns, web, knowledge = [], [], []
    for _ in range(rounds):
        asked = message.replace("{page}", world.page(0))
        turns.append(measure(partial(run_turn, world, asked, filters)))
        asked = message.replace("{page}", world.page(0))
        web.append(measure(partial(look_up_web, world, asked)))
        knowledge.append(look_up_knowledge(world, asked, filters))
    own = 2 * MODEL_SECONDS
    slower = max(median(web), median(knowledge))
    detail = f"turn {median(turns):.2f} s, web alone {median(web):.2f} s, knowledge alone {median(knowledge):.2f} s, model {own:.0f} s"
    world.report(name, median(turns) / (slower + own), TURN_BAR, detail)


def measure_pages(world: World, rounds: int) -> None:
    def read(urls: Sequence[str]) -> None:
        with world.session() as session:
            outcomes = session.read(urls, Deadline.after(60))
            assert all(isinstance(one, WebPage) for one in outcomes), outcomes

    slowest, together = [], []
    for _ in range(rounds):
        alone = [measure(partial(read, [world.page(n)])) for n in range(8)]
        slowest.append(max(alone))
        together.append(measure(partial(read, [world.page(n) for n in range(8)])))
    detail = f"eight {median(together):.2f} s, the slowest alone {median(slowest):.2f} s"
    world.report("eight pages at once", median(together) / median(slowest), PAGES_BAR, detail)


def measure_cache(world: World, rounds: int) -> None:
    conversation = begin(world.container.database).answer.conversation_id
    session = CachedSession(ConversationOwner(None), conversation)

    def find(query: str) -> None:
        with world.session(session) as web:
            began = time.perf_counter()
            finding = web.find(query, 5, Deadline.after(30))
            seconds.append(time.perf_counter() - began)
            assert finding.results

    seconds: list[float] = []
    queries = [f"parental leave in Denmark {n}" for n in range(3 * rounds)]
    for query in queries:
        find(query)
    uncached, seconds = median(seconds), []
    for query in queries:
        find(query)
    ratio = median(seconds) / uncached
    detail = f"cached {median(seconds) * 1000:.1f} ms, uncached {uncached * 1000:.0f} ms"
    world.report("a cached search", ratio, CACHE_BAR, detail)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder, open_world(Path(folder)) as world:
        run_turn(world, QUESTION, Filters())  # loads what the others find loaded
        measure_turn(world, rounds, "a turn with both", QUESTION, Filters())
        measure_turn(
            world, rounds, "a turn with both and a page", f"{QUESTION} {{page}}", Filters()
        )
        measure_turn(world, rounds, "a turn that finds no document", QUESTION, FEW)
        measure_pages(world, min(rounds, 3))
        measure_cache(world, rounds)
    sys.exit(1 if world.misses else 0)


if __name__ == "__main__":
    main()
