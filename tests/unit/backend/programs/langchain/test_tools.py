"""What the tools tell a model: results, how to cite them, and what to do where there are none."""

import json
import re
import shutil
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.chat.agent.tool_definitions import INTERNAL_SEARCH
from backend.programs.langchain import InternalSearchTool, OpenedHome, ToolSession, open_home
from backend.web_search.domains import DomainRules
from backend.web_search.result_text import CITATION_RULES, HOW_TO_CITE
from backend.web_search.service import RulesChange
from backend.web_search.tool_texts import WEB_SEARCH_TEXTS
from indexing.runtime.deadline import CancelToken, Deadline
from tests.contract.provider_worlds.world import ITEMS
from tests.support.accounts import add_person
from tests.support.services.serving import Reply, reply_text
from tests.unit.backend.programs.langchain.conftest import ANN, Company

pytestmark = pytest.mark.soak("slow")

FOUND = "Found {} relevant sources. Use [number] format to cite specific information."


def call(tool: BaseTool, **arguments: object) -> ToolMessage:
    message = tool.invoke(
        {"type": "tool_call", "id": "1", "name": tool.name, "args": dict(arguments)}
    )
    assert isinstance(message, ToolMessage)
    return message


def failed(message: ToolMessage) -> str:
    assert message.status == "error"
    return message.text


def documents_of(text: str) -> Mapping[str, int]:
    """The titles of the documents that a result holds, with their numbers."""
    (line,) = [one for one in text.splitlines() if one.startswith("{")]
    return {one["title"]: one["document"] for one in json.loads(line)["results"]}


def pages_of(text: str) -> Mapping[str, int]:
    return {title: int(number) for number, title in re.findall(r"^\[(\d+)\] (.*)$", text, re.M)}


def check_frame(text: str, count: int) -> None:
    assert text.startswith(f"{HOW_TO_CITE}\n{FOUND.format(count)}\n\n")
    assert CITATION_RULES in text


def test_documents_are_numbered_once_for_all_searches(anns_home: OpenedHome) -> None:
    internal, _ = anns_home.make_tools(ToolSession())
    first = call(internal, queries=["second class trains", "sick leave"])
    numbers = documents_of(first.text)
    check_frame(first.text, len(numbers))
    assert first.text.endswith(CITATION_RULES)
    assert {"Travel", "Sick leave"} <= numbers.keys()
    assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
    again = documents_of(call(internal, queries=["QX-4471", "second class trains"]).text)
    assert {title: again[title] for title in again if title in numbers} == {
        title: numbers[title] for title in again if title in numbers
    }
    assert "Travel" in again
    assert again["Project QX-4471"] not in numbers.values()
    assert {one["number"]: one["title"] for one in first.artifact} == {
        number: title for title, number in numbers.items()
    }
    assert all(one["link"].startswith("file://") for one in first.artifact)


def test_pages_share_the_numbers_of_documents(anns_home: OpenedHome) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    documents = documents_of(call(internal, queries="second class trains").text)
    message = call(web, query="parental leave law")
    pages = pages_of(message.text)
    check_frame(message.text, len(ITEMS))
    assert list(pages) == [one.title for one in ITEMS]
    assert set(pages.values()).isdisjoint(documents.values())
    assert pages_of(call(web, query="leave of parents").text) == pages
    assert [(one["number"], one["title"]) for one in message.artifact] == [
        (number, title) for title, number in pages.items()
    ]


def test_another_conversation_counts_from_one(anns_home: OpenedHome) -> None:
    for _ in range(2):
        internal, _ = anns_home.make_tools(ToolSession())
        assert 1 in documents_of(call(internal, queries="QX-4471").text).values()


def test_a_text_alone_is_a_query(anns_home: OpenedHome) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    assert "Travel" in documents_of(internal.invoke("second class trains"))
    assert pages_of(web.invoke("parental leave")).keys() == {one.title for one in ITEMS}


def test_only_the_first_queries_are_searched_and_it_is_said(anns_home: OpenedHome) -> None:
    internal, _ = anns_home.make_tools(ToolSession())
    queries = ["trains", "sick leave", "portal", "QX-4471"]
    text = call(internal, queries=queries).text
    assert "Only the first 3 of the 4 queries" in text
    assert "Project QX-4471" not in documents_of(text)


def test_the_schema_describes_the_arguments_with_examples(anns_home: OpenedHome) -> None:
    internal, web = map(convert_to_openai_tool, anns_home.make_tools(ToolSession()))
    assert internal["function"]["name"] == "internal_search"
    assert internal["function"]["description"] == INTERNAL_SEARCH.description
    queries = internal["function"]["parameters"]["properties"]["queries"]
    own: Any = INTERNAL_SEARCH.parameters
    assert queries["description"] == own["properties"]["queries"]["description"]
    assert queries["examples"]
    assert web["function"]["name"] == "web_search"
    query = web["function"]["parameters"]["properties"]["query"]
    assert query["examples"] == list(WEB_SEARCH_TEXTS["en"].examples)
    assert query["description"] == WEB_SEARCH_TEXTS["en"].parameter


def test_the_search_of_the_web_is_described_in_chinese(anns_home: OpenedHome) -> None:
    _, web = anns_home.make_tools(ToolSession(), language="zh")
    described = convert_to_openai_tool(web)["function"]
    assert described["description"].startswith("搜索互联网获取实时信息。")
    query = described["parameters"]["properties"]["query"]
    assert query["description"] == "搜索查询关键词,应该具体、清晰、针对性强"
    assert query["examples"] == list(WEB_SEARCH_TEXTS["zh"].examples)


def test_documents_of_others_are_not_found(anns_home: OpenedHome, bobs_home: OpenedHome) -> None:
    queries = ["budget of Project QX-4471", "4,711 euros"]
    anns, _ = anns_home.make_tools(ToolSession())
    assert "Project QX-4471" in documents_of(call(anns, queries=queries).text)
    bobs, _ = bobs_home.make_tools(ToolSession())
    message = call(bobs, queries=queries)
    assert "4,711" not in message.text
    assert "Project" not in message.text


def test_rights_are_read_anew_for_each_call(company: Company) -> None:
    add_person(company.container.database, "ada@example.com", Role.ADMIN)
    groups = GroupService(company.container.database)
    groups.create("finance")
    with open_home("user:ada@example.com", settings=company.settings) as home:
        internal, _ = home.make_tools(ToolSession())
        retriever = home.make_retriever()

        def finds() -> tuple[bool, bool]:
            shown = call(internal, queries="QX-4471").text
            return "4,711" in shown, "4,711" in str(retriever.invoke("QX-4471"))

        assert finds() == (False, False)
        groups.add_member("finance", "ada@example.com")
        assert finds() == (True, True)
        groups.remove_member("finance", "ada@example.com")
        assert finds() == (False, False)


def test_nothing_found_is_said(anns_home: OpenedHome, company: Company) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    found = call(internal, queries="qqqqzzzz")
    assert found.status == "success"
    assert "The search found nothing in the documents that this user may read." in found.text
    assert found.artifact == []
    company.engine.items = ()
    assert "The search of the web found nothing." in call(web, query="leave").text


@pytest.mark.parametrize("arguments", [{}, {"queries": []}, {"queries": [" "]}, {"q": "leave"}])
def test_arguments_that_do_not_fit_are_explained(
    anns_home: OpenedHome, arguments: dict[str, object]
) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    assert 'Call again with JSON like {"queries": ["..."]}' in failed(call(internal, **arguments))
    assert 'Call again with JSON like {"query": "..."}' in failed(call(web, **arguments))


def test_a_web_that_is_off_is_said(anns_home: OpenedHome, company: Company) -> None:
    _, web = anns_home.make_tools(ToolSession())
    company.web.change_rules(RulesChange(is_on=False))
    said = failed(call(web, query="leave"))
    assert "The web search is switched off." in said
    assert "Do not call this tool again." in said
    company.web.change_rules(RulesChange(is_on=True))
    company.web.remove("desk")
    assert "No web search provider is enabled" in failed(call(web, query="leave"))
    assert company.web_queries == []


def test_a_provider_that_fails_is_said(anns_home: OpenedHome, company: Company) -> None:
    _, web = anns_home.make_tools(ToolSession())
    company.engine.instead = Reply(status=401)
    said = failed(call(web, query="leave"))
    assert said.startswith("The search of the web failed. desk: ")
    assert "Answer from what was found before" in said
    company.engine.instead = reply_text("no JSON")
    assert "desk: " in failed(call(web, query="leave"))


def test_domains_narrow_the_search_of_the_web(anns_home: OpenedHome) -> None:
    only = DomainRules.of(["example.net"], [])
    _, web = anns_home.make_tools(ToolSession(), only)
    assert list(pages_of(call(web, query="leave").text)) == ["A & B < C"]


def test_an_index_that_is_lost_is_said(anns_home: OpenedHome, company: Company) -> None:
    internal, _ = anns_home.make_tools(ToolSession())
    shutil.rmtree(company.settings.home / "index")
    said = failed(call(internal, queries="leave"))
    assert "There is no index" in said
    assert "Do not call this tool again." in said


def test_time_that_is_over_is_said(anns_home: OpenedHome, company: Company) -> None:
    session = ToolSession()
    for tool in anns_home.make_tools(session):
        late = tool.model_copy(update={"start_deadline": lambda: Deadline.after(0)})
        argument = {"queries": "leave"} if isinstance(tool, InternalSearchTool) else {"query": "x"}
        assert "did not end in time" in failed(call(late, **argument))
    assert company.web_queries == []


def test_a_turn_that_was_stopped_searches_no_more(anns_home: OpenedHome) -> None:
    stop = CancelToken()
    internal, _ = anns_home.make_tools(ToolSession())
    of_turn = internal.model_copy(update={"start_deadline": lambda: Deadline.after(60, stop)})
    assert call(of_turn, queries="leave").status == "success"
    stop.cancel()
    assert "did not end in time" in failed(call(of_turn, queries="leave"))


def test_a_closed_home_is_said(company: Company) -> None:
    with open_home(ANN, settings=company.settings) as home:
        internal, web = home.make_tools(ToolSession())
        assert call(internal, queries="leave").status == "success"
    assert "The home of Quarry was closed." in failed(call(internal, queries="leave"))
    assert "The home of Quarry was closed." in failed(call(web, query="leave"))


def test_no_exact_term_of_a_private_document_is_sent_to_a_provider(
    anns_home: OpenedHome, company: Company
) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    call(internal, queries="budget of Project QX-4471")
    sent = call(web, query="QX-4471 competitors in Europe")
    assert company.web_queries == ["competitors in Europe"]
    assert "Left out of the query" in sent.text
    assert "was not sent" in failed(call(web, query="QX-4471"))
    assert len(company.web_queries) == 1


@pytest.mark.parametrize("name", ["Gerda Krummholz", "HB-2290"])
def test_no_owner_or_metadata_of_a_private_document_is_sent(
    anns_home: OpenedHome, company: Company, name: str
) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    assert name in call(internal, queries="budget of Project QX-4471").text
    call(web, query=f"{name} competitors in Europe")
    assert company.web_queries == ["competitors in Europe"]


@pytest.mark.parametrize("disguise", ["UVgtNDQ3MQ==", "51582d34343731"])
def test_no_term_in_disguise_is_sent(
    anns_home: OpenedHome, company: Company, disguise: str
) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    call(internal, queries="budget of Project QX-4471")
    sent = call(web, query=f"{disguise} competitors in Europe")
    assert company.web_queries == ["competitors in Europe"]
    assert "Left out of the query" in sent.text


@pytest.mark.parametrize("disguise", ["1744-XQ", "QX%2D4471"])
def test_a_query_that_is_a_term_in_disguise_as_a_whole_is_refused(
    anns_home: OpenedHome, company: Company, disguise: str
) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    call(internal, queries="budget of Project QX-4471")
    assert "was not sent" in failed(call(web, query=f"{disguise} competitors in Europe"))
    assert company.web_queries == []


def test_what_the_asker_wrote_is_sent(anns_home: OpenedHome, company: Company) -> None:
    session = ToolSession(["What is QX-4471?"])
    internal, web = anns_home.make_tools(session)
    call(internal, queries="QX-4471")
    call(web, query="QX-4471 competitors")
    call(web, query="4,711 euros in dollars")
    session.add_message("How much are 4,711 euros in dollars?")
    call(web, query="4,711 euros in dollars")
    assert company.web_queries[0] == "QX-4471 competitors"
    assert "4,711" not in company.web_queries[1]
    assert company.web_queries[2] == "4,711 euros in dollars"


def test_admins_may_let_all_terms_be_sent(anns_home: OpenedHome, company: Company) -> None:
    company.web.change_rules(RulesChange(keeps_internal_names=False))
    internal, web = anns_home.make_tools(ToolSession())
    call(internal, queries="QX-4471")
    call(web, query="QX-4471 competitors")
    assert company.web_queries == ["QX-4471 competitors"]


def test_a_tool_shows_nothing_of_its_home(anns_home: OpenedHome) -> None:
    for tool in anns_home.make_tools(ToolSession()):
        assert "session" not in tool.model_dump()
        assert "search=" not in repr(tool)
