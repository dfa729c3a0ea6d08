"""What leaves in queries and addresses once something internal was read, and what may be opened at all."""

import re
from dataclasses import replace

import pytest

from backend.chat import prompts
from backend.chat.context_files import ContextFile
from backend.search.llm_protocol import ChatMessage
from backend.web_search.results import WebPage
from tests.contract.provider_worlds.world import Item
from tests.support.agent_world import (
    PRIVATE,
    AgentWorld,
    find_pages,
    found_number,
    internal_search,
    is_framed,
    open_url,
    page,
    pages_in,
    tool_results,
    web_search,
)
from tests.support.scripted_model import Call, Request, Say, ToolUse
from tests.support.scripted_model import Reply as ModelReply
from tests.support.search import MemoryIndex

READING_PRIVATE = internal_search("project code budget supplier")


def test_internal_names_are_kept_out_of_queries_and_it_is_said(world: AgentWorld) -> None:
    find_pages(world, "/a")
    query = "Aurora Falcon leave law ZX-4417"
    world.ask([Call(READING_PRIVATE), Call(web_search(query)), Say("x [1].")])
    assert world.queries == ["leave law"]
    [event] = world.searched
    assert set(event.withheld) == {"Aurora Falcon", "ZX-4417"}
    assert "Left out of the query" in world.results(2)[1]
    assert is_framed(world.results(2)[1], 1)


def test_a_query_of_internal_names_alone_is_refused(world: AgentWorld) -> None:
    world.ask([Call(READING_PRIVATE), Call(web_search("Gerda Krummholz")), Say("x")])
    assert world.queries == []
    assert world.results(2)[1] == prompts.NOTHING_LEFT_OF_QUERY
    [event] = world.searched
    assert event.withheld == ("Gerda Krummholz",)


def test_what_the_asker_wrote_is_searched(world: AgentWorld) -> None:
    find_pages(world, "/a")
    history = (ChatMessage("user", "It is about Gerda Krummholz."),)
    world.ask(
        [Call(READING_PRIVATE), Call(web_search("Gerda Krummholz")), Say("x")], history=history
    )
    assert world.queries == ["Gerda Krummholz"]


def test_what_an_answer_said_before_does_not_make_a_name_the_askers(world: AgentWorld) -> None:
    history = (ChatMessage("user", "Who?"), ChatMessage("assistant", "Gerda Krummholz."))
    world.ask(
        [Call(READING_PRIVATE), Call(web_search("Gerda Krummholz")), Say("x")], history=history
    )
    assert world.queries == []


def test_before_documents_are_read_a_query_is_sent_as_it_is(world: AgentWorld) -> None:
    find_pages(world, "/a")
    world.ask([Call([READING_PRIVATE, web_search("Aurora Falcon")]), Say("x")])
    assert world.queries == ["Aurora Falcon"]


def test_files_are_kept_out_of_queries_as_documents_are(world: AgentWorld) -> None:
    find_pages(world, "/a")
    file = ContextFile(document_id="up:a", name="offer.md", text="The client is Hollis Brandwein.")
    world.ask([Call(web_search("Hollis Brandwein rates")), Say("x")], files=(file,))
    assert world.queries == ["rates"]


def test_public_documents_keep_nothing_back(world: AgentWorld) -> None:
    find_pages(world, "/a")
    world.index = MemoryIndex(
        tuple(one for one in world.index.corpus if one.document_id == "kb:leave")
    )
    world.ask(
        [
            Call(internal_search("annual leave")),
            Call(web_search("Annual leave is 25 days a year")),
            Say("x"),
        ]
    )
    assert world.queries == ["Annual leave is 25 days a year"]


def test_the_setting_off_sends_queries_as_they_are(world: AgentWorld) -> None:
    find_pages(world, "/a")
    world.rules = replace(world.rules, keeps_internal_names=False)
    world.ask([Call(READING_PRIVATE), Call(web_search("Gerda Krummholz")), Say("x")])
    assert world.queries == ["Gerda Krummholz"]


def test_an_address_that_a_model_makes_up_is_never_opened(world: AgentWorld) -> None:
    made_up = world.put("law.test", "/leave", page("The law", "<p>Leave is 20 days.</p>"))
    world.ask([Call(open_url(made_up, "7")), Say("x")])
    assert world.pages_asked == []
    address, number = pages_in(world.results(1)[0])
    assert address["not_opened"] == prompts.UNKNOWN_ADDRESS
    assert number["not_opened"] == prompts.UNKNOWN_NUMBER


def test_the_number_of_a_document_opens_nothing(world: AgentWorld) -> None:
    world.ask([Call(internal_search("annual leave")), Call(open_url("1")), Say("x")])
    assert world.pages_asked == []
    assert pages_in(world.results(2)[1])[0]["not_opened"] == prompts.UNKNOWN_NUMBER


def test_an_address_is_requested_as_it_was_given_whatever_is_added(world: AgentWorld) -> None:
    url = world.put("law.test", "/leave", page("The law", "<p>Leave is 20 days.</p>"))
    world.ask(
        [Call(open_url(f"{url}?utm_source=ZX-4417#ZX-4417")), Say("x [1].")], message=f"Read {url}"
    )
    assert world.pages_asked == ["law.test/leave"]


def test_an_address_of_an_answer_is_not_one_of_the_asker(world: AgentWorld) -> None:
    url = world.url("law.test", "/leave")
    history = (ChatMessage("user", "Where?"), ChatMessage("assistant", f"At {url}."))
    world.ask([Call(open_url(url)), Say("x")], history=history)
    assert world.pages_asked == []


def _follow(world: AgentWorld, first: Call, links: str, question: str) -> list[str]:
    """Read a page after a first step, then each link that it lists; return the paths that were asked for."""
    world.put("news.test", "/law", page("The law", f"<p>Leave is 20 days.</p>{links}"))
    find_pages(world, "/law")

    def play(request: Request) -> ModelReply:
        results = tool_results(request)
        steps = [first, Call(web_search("leave law")), None]
        if len(results) < 2:
            return steps[len(results)] or Say("x")
        if len(results) == 2:
            return Call(open_url(found_number(results[1], "Page 1")))
        if len(results) == 3:
            listed = pages_in(results[2])[0].get("links", [])
            return Call([open_url(one["open"]) for one in listed]) if listed else Say("None.")
        return Say("x")

    world.ask(play, message=question)
    return world.pages_asked[1:]


OWN = '<p><a href="/annual">Annual leave in detail</a></p>'
ELSEWHERE = '<p><a href="{law}/annual">Annual leave in the law</a></p>'
UNRELATED = '<p><a href="/z">Z</a></p>'
QUESTION = "How much annual leave do people have?"


@pytest.mark.parametrize(
    ("first", "links", "followed"),
    [
        (internal_search("Hi"), OWN + ELSEWHERE + UNRELATED, ["news.test/annual", "law.test/annual", "news.test/z"]),
        (READING_PRIVATE, OWN, ["news.test/annual"]),
        (READING_PRIVATE, ELSEWHERE, []),
        (READING_PRIVATE, UNRELATED, []),
        (READING_PRIVATE, OWN + ELSEWHERE + UNRELATED, ["news.test/annual"]),
        (READING_PRIVATE, '<p><a href="/annual/ZX-4417">Annual leave</a></p>', []),
        (READING_PRIVATE, '<p><a href="/annual?for=aurora+falcon">Annual leave</a></p>', []),
    ],
)  # fmt: skip
def test_links_are_followed_on_their_own_site_once_documents_were_read(
    world: AgentWorld, first: ToolUse, links: str, followed: list[str]
) -> None:
    links = links.replace("{law}", world.url("law.test", ""))
    assert sorted(_follow(world, Call(first), links, QUESTION)) == sorted(followed)


def test_five_links_are_followed_in_a_turn(world: AgentWorld) -> None:
    names = ("of-parents", "for-school", "when-ill", "at-sea", "in-summer")
    others = ("by-hand", "with-notice", "on-request")
    for start in ("/one", "/two"):
        links = "".join(
            f'<p><a href="{start}-leave-{name}-{"explained" * (at + 1)}">Annual leave {name}</a></p>'
            for at, name in enumerate(names if start == "/one" else others)
        )
        world.put("news.test", start, page("The law", links))
    find_pages(world, "/one", "/two")

    def play(request: Request) -> ModelReply:
        results = tool_results(request)
        if len(results) < 2:
            return [Call(READING_PRIVATE), Call(web_search("leave law"))][len(results)]
        if len(results) == 2:
            numbers = re.findall(r"^\[(\d+)\] ", results[1], re.MULTILINE)
            return Call(open_url(*numbers))
        if len(results) == 3:
            listed = [link["open"] for one in pages_in(results[2]) for link in one["links"]]
            assert len(listed) == 8
            return Call(open_url(*listed))
        return Say("x")

    world.ask(play, message=QUESTION)
    assert len(world.pages_asked) == 2 + 5
    refused = [one for one in pages_in(world.results(-1)[-1]) if "not_opened" in one]
    assert [one["not_opened"] for one in refused] == [prompts.TOO_MANY_LINKS] * 3


def test_a_result_whose_address_tells_an_internal_name_is_not_opened(world: AgentWorld) -> None:
    find_pages(world, "/leave/aurora-falcon")
    world.ask([Call(READING_PRIVATE), Call(web_search("leave law")), Call(open_url("3")), Say("x")])
    results = world.results(-1)
    number = found_number(results[1], "Page 1")
    assert number == "3"
    assert world.pages_asked == []
    assert pages_in(results[2])[0]["not_opened"] == prompts.PRIVATE_ADDRESS


@pytest.mark.parametrize(
    "host",
    ["zx-4417.evil.test", "aurora.falcon.evil.test", "ZX4417.test", "5a582d34343137.evil.test"],
)
def test_a_result_whose_host_tells_an_internal_name_is_not_opened(
    world: AgentWorld, host: str
) -> None:
    world.allowed |= {host.lower()}
    url = world.put(host.lower(), "/leave", page("The law", "<p>Leave is 20 days.</p>"))
    world.engine.items = [Item("The law", url, "Leave is 20 days.")]
    world.ask([Call(READING_PRIVATE), Call(web_search("leave law")), Call(open_url(url)), Say("x")])
    assert world.pages_asked == []
    assert pages_in(world.results(-1)[2])[0]["not_opened"] == prompts.PRIVATE_ADDRESS


def test_a_domain_that_documents_link_to_is_opened(world: AgentWorld) -> None:
    world.index = MemoryIndex(
        (replace(world.index.corpus[0], text="See http://law.test/x", access=PRIVATE),)
    )
    url = world.put("law.test", "/leave", page("The law", "<p>Leave is 20 days.</p>"))
    world.engine.items = [Item("The law", url, "Leave is 20 days.")]
    world.ask(
        [
            Call(internal_search("leave")),
            Call(web_search("leave law")),
            Call(open_url(url)),
            Say("x"),
        ]
    )
    assert world.pages_asked == ["law.test/leave"]


def test_pages_that_were_read_are_events_with_what_they_are(world: AgentWorld) -> None:
    url = world.put("law.test", "/leave", page("The law", "<p>Leave is 20 days.</p>"))
    world.ask([Call(open_url(url)), Say("20 days [1].")], message=f"Read {url}")
    [event] = world.read
    [outcome] = event.pages
    assert isinstance(outcome, WebPage)
    assert outcome.title == "The law"


@pytest.mark.parametrize("place", ["evil.test/letter/{}", "{}.evil.test/letter/x"])
def test_no_more_than_five_pages_of_a_domain_are_opened_for_what_was_read(
    world: AgentWorld, place: str
) -> None:
    """Who has a page found for each letter gets no text by which of them are opened."""
    letters = [place.format(letter).partition("/")[::2] for letter in "zx41bq7"]
    world.allowed |= {host for host, _ in letters}
    for host, path in letters:
        world.put(host, f"/{path}", page("A letter", "<p>Leave.</p>"))

    def play(request: Request) -> ModelReply:
        results = tool_results(request)
        if not results:
            return Call(READING_PRIVATE)
        if len(results) in (1, 3):
            shown = letters[:4] if len(results) == 1 else letters[4:]
            urls = [world.url(host, f"/{path}") for host, path in shown]
            world.engine.items = [Item("Letter", url, "A letter.") for url in urls]
            return Call(web_search(f"letters {len(results)}"))
        if len(results) in (2, 4):
            return Call(open_url(*re.findall(r"^\[(\d+)\] ", results[-1], re.MULTILINE)))
        return Say("x")

    world.ask(play)
    assert len(world.pages_asked) == 5
    told = pages_in(world.results(-1)[-1])
    assert [one.get("not_opened", "") for one in told][1:] == [prompts.TOO_MANY_OF_SITE] * 2


def test_a_query_with_signs_loses_its_names_and_keeps_the_rest(world: AgentWorld) -> None:
    find_pages(world, "/a")
    query = "C++ and 100% leave of Aurora Falcon"
    world.ask([Call(READING_PRIVATE), Call(web_search(query)), Say("x [1].")])
    assert world.queries == ["C++ and 100% leave of"]
