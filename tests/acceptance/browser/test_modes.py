"""Chat and Agent mode in a browser: switches, what they keep, steps, joined references, the list at the end."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Opens, check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.services.serving import RunningService
from tests.support.serving import Serving, serving
from tests.support.web_search import LAW, list_queries, serve_engine, switch_on_in_home

QUESTION = "How long is parental leave?"
COMPLETE = re.compile(r"The answer is complete\.")
DECIDES = "In Agent mode the AI decides by itself when to search"
DECIDES_ZH = "Agent 模式下由 AI 自动决策搜索"
GENERAL = "From general knowledge, not from a source. Check it before you rely on it."
CHINESE = {"locale": "zh-CN"}
PLAN = """<websearch><question>parental leave law</question></websearch>
<knowledge><rewrite>How long is parental leave here?</rewrite><question>parental leave</question></knowledge>"""


def _answer(request: Request) -> Reply:
    """A model that cites all that it is given, and lists it besides."""
    if not request.answers:
        return Say("parental leave")
    if not request.has_sources:
        return Say("Babies are born after nine months.")
    marks = "".join(f"[{one['number']}]" for one in request.sources)
    return Say(f"Each parent has 24 weeks of leave {marks}.\n\n## References\n\n[1] My list\n")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        running.play(_answer)
        running.plan = PLAN
        yield running


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningService]:
    with serve_engine() as running:
        yield running


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home of one document, without the web."""
    path = tmp_path_factory.mktemp("modes")
    (path / "wiki").mkdir()
    leave = "# Parental leave\n\nParents have 26 weeks of paid leave.\n"
    (path / "wiki" / "leave.md").write_text(leave, encoding="utf-8")
    home = Home(path)
    for arguments in (("add", "folder", str(path / "wiki")), ("sync", "--json")):
        done = home.quarry(*arguments)
        assert done.code == 0, done.err
    return home


@pytest.fixture(scope="module")
def server(desk: Home, model: ScriptedModel) -> Iterator[Serving]:
    with serving(desk, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as running:
        yield running


def _switch(page: Page, name: str) -> Locator:
    return page.get_by_role("switch", name=name)


def _mode(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Mode").get_by_role("button", name=name)


def _expect_switch(page: Page, name: str, *, on: bool, disabled: bool = False) -> None:
    expect(_switch(page, name)).to_have_attribute("aria-checked", str(on).lower())
    expect(_switch(page, name)).to_have_attribute("aria-disabled", str(disabled).lower())


def _ask(page: Page, question: str = QUESTION, label: str = "Your question") -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(question)
    box.press("Enter")


def _last(page: Page) -> Locator:
    return page.locator(".message.answering").last


def test_where_no_admin_switched_the_web_on_its_switch_says_so(
    opens: Opens, server: Serving, pictures: Path
) -> None:
    with opens(server.url) as watched:
        page = watched.open("/chat")
        _expect_switch(page, "Company knowledge", on=True)
        _expect_switch(page, "Web", on=False, disabled=True)
        expect(_switch(page, "Web")).to_have_accessible_description(
            "The web is switched off. An admin can switch it on."
        )
        _switch(page, "Web").press("Space")
        expect(page.get_by_role("status")).to_have_text(
            "The web is switched off. An admin can switch it on."
        )
        _expect_switch(page, "Web", on=False, disabled=True)
        check_looks(page, pictures, "modes-web-off")


@pytest.fixture(scope="module")
def online(desk: Home, server: Serving, engine: RunningService) -> str:
    """The address of the server once its web is on, for the tests from here on."""
    switch_on_in_home(desk, engine)
    return server.url


def test_both_sides_are_searched_and_joined(
    opens: Opens, online: str, engine: RunningService, pictures: Path
) -> None:
    engine.log.clear()
    with opens(online) as watched:
        page = watched.open("/chat")
        _expect_switch(page, "Web", on=False)
        _switch(page, "Web").press("Space")
        _expect_switch(page, "Web", on=True)
        _ask(page)
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        assert sorted(list_queries(engine)) == [QUESTION, "parental leave law"]

        first, second = _last(page).locator(".answer .cite").all()
        expect(first).to_have_attribute("href", LAW.url)
        expect(first).to_have_attribute("target", "_blank")
        expect(first).to_have_attribute("rel", "noopener noreferrer nofollow")
        expect(first).to_have_attribute("data-host", "law.example.com")
        expect(first).to_have_accessible_name(
            f"Source 1, on the web at law.example.com: {LAW.title}"
        )
        assert "/document/" in (second.get_attribute("href") or "")
        first.focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        expect(page.locator("#card")).to_contain_text("Web · law.example.com")

        references = _last(page).get_by_role("region", name="References")
        expect(references.get_by_role("listitem")).to_have_text(
            [re.compile(rf"^1{LAW.title}Web · law\.example\.com"), re.compile("^2Parental leave")]
        )
        expect(references.get_by_role("link").first).to_have_attribute(
            "rel", "noopener noreferrer nofollow"
        )
        expect(_last(page).locator(".answer")).not_to_contain_text("My list")

        _last(page).locator(".work summary").click()
        steps = _last(page).locator(".steps")
        expect(steps).to_contain_text("Looked up in company knowledge: How long is parental leave?")
        expect(steps).to_contain_text("Looked up on the web: How long is parental leave?")
        expect(steps).to_contain_text("“parental leave law” was sent to SearXNG (127.0.0.1")
        expect(steps).to_contain_text("Found 1 page on the web")
        check_looks(page, pictures, "modes-answer")

        page.reload()
        expect(_last(page).locator(".references li")).to_have_count(2)
        _expect_switch(page, "Web", on=True)


def test_agent_mode_disables_the_switches_and_chat_mode_brings_them_back(
    opens: Opens, online: str, pictures: Path
) -> None:
    with opens(online) as watched:
        page = watched.open("/chat")
        _switch(page, "Company knowledge").click()
        _switch(page, "Web").click()
        _mode(page, "Agent").press("Enter")
        expect(_mode(page, "Agent")).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#modes-why")).to_have_text(DECIDES)
        _expect_switch(page, "Company knowledge", on=False, disabled=True)
        _expect_switch(page, "Web", on=True, disabled=True)
        expect(_switch(page, "Web")).to_have_accessible_description(DECIDES)
        _switch(page, "Web").press("Enter")
        expect(page.get_by_role("status")).to_have_text(DECIDES)
        _expect_switch(page, "Web", on=True, disabled=True)
        check_looks(page, pictures, "modes-agent")
        _ask(page, "Are babies born after nine months?")
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        address = page.url

        page.get_by_role("link", name="New conversation").click()
        _mode(page, "Chat").click()
        expect(page.locator("#modes-why")).to_be_hidden()
        _expect_switch(page, "Company knowledge", on=False)
        _expect_switch(page, "Web", on=True)
        page.goto(address)
        expect(_mode(page, "Agent")).to_have_attribute("aria-pressed", "true")
        page.goto(f"{online}/chat")
        expect(_mode(page, "Chat")).to_have_attribute("aria-pressed", "true")
        _expect_switch(page, "Web", on=True)


def test_an_answer_without_a_source_is_marked(opens: Opens, online: str) -> None:
    with opens(online) as watched:
        page = watched.open("/chat")
        _switch(page, "Company knowledge").click()
        _ask(page, "When are babies born?")
        expect(_last(page).get_by_text(GENERAL)).to_be_visible()
        expect(_last(page).locator(".references")).to_be_hidden()
        expect(_last(page).locator(".cite")).to_have_count(0)
        page.reload()
        expect(_last(page).get_by_text(GENERAL)).to_be_visible()
        # A question that is edited is asked as it was.
        page.get_by_role("button", name="Edit").click()
        editing = page.get_by_label("Edit your question")
        editing.fill("When are babies born, then?")
        editing.press("Enter")
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        expect(_last(page).get_by_text(GENERAL)).to_be_visible()


def test_rewriting_is_switched_and_kept_as_the_others_are(opens: Opens, online: str) -> None:
    with opens(online) as watched:
        page = watched.open("/chat")
        _expect_switch(page, "Rewriting", on=True)
        _switch(page, "Rewriting").press("Space")
        _expect_switch(page, "Rewriting", on=False)
        _mode(page, "Agent").click()
        _expect_switch(page, "Rewriting", on=False, disabled=True)
        _mode(page, "Chat").click()
        with page.expect_request(
            lambda request: request.method == "POST" and "/api/conversations" in request.url
        ) as asked:
            _ask(page)
        assert (asked.value.post_data_json or {})["rewrite"] is False
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        page.reload()
        _expect_switch(page, "Rewriting", on=False)
        _switch(page, "Rewriting").click()
        _expect_switch(page, "Rewriting", on=True)


def test_the_page_of_one_question_has_them_too(opens: Opens, online: str) -> None:
    with opens(online) as watched:
        page = watched.open("/ask")
        _switch(page, "Web").click()
        _ask(page, label="Ask a question")
        expect(page.locator(".references li")).to_have_count(2)
        page.goto(f"{online}/ask")
        _expect_switch(page, "Web", on=True)
        _mode(page, "Agent").click()
        expect(page.locator("#modes-why")).to_have_text(DECIDES)


def test_in_chinese(opens: Opens, online: str, pictures: Path) -> None:
    with opens(online, **CHINESE) as watched:
        page = watched.open("/chat")
        group = page.get_by_role("group", name="模式")
        group.get_by_role("button", name="Agent").click()
        expect(page.locator("#modes-why")).to_have_text(DECIDES_ZH)
        for name in ("企业知识", "网络"):
            _expect_switch(page, name, on=name == "企业知识", disabled=True)
            expect(_switch(page, name)).to_have_accessible_description(DECIDES_ZH)
        assert find_english(page) == []
        group.get_by_role("button", name="对话").click()
        _switch(page, "网络").click()
        _ask(page, label="您的问题")
        expect(page.get_by_role("status")).to_have_text(re.compile("回答已完成"))
        references = _last(page).get_by_role("region", name="参考文献")
        expect(references.get_by_role("listitem")).to_have_count(2)
        expect(references.get_by_role("listitem").first).to_contain_text("网络 · law.example.com")
        _last(page).locator(".work summary").click()
        expect(_last(page).locator(".steps")).to_contain_text("发送给 SearXNG")
        assert find_english(page) == []
        check_looks(page, pictures, "zh-modes-answer")
        page.get_by_role("link", name="新对话").click()
        _switch(page, "企业知识").click()
        _switch(page, "网络").click()
        _ask(page, "婴儿何时出生？", label="您的问题")
        expect(_last(page).get_by_text("来自通用知识，没有来源。请核实后再采用。")).to_be_visible()
        assert find_english(page) == []


def test_in_the_terminal(desk: Home, online: str, model: ScriptedModel) -> None:
    assert online

    def ask(*arguments: str, code: int = 0) -> str:
        run = desk.quarry(
            "ask", QUESTION, *arguments,
            QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted",
        )  # fmt: skip
        assert run.code == code, run.err
        return run.out + run.err

    both = ask("--web")
    assert "on the web: parental leave law (sent to SearXNG (127.0.0.1" in both
    listed = both.partition("\nReferences\n")[2]
    assert f"[1] {LAW.title} (web)" in listed
    assert "[2] Parental leave\n" in listed
    assert "My list" not in both
    assert "on the web" not in ask("--no-web")
    general = ask("--no-knowledge", "--no-rewrite")
    assert GENERAL in general
    assert "References" not in general
    assert DECIDES in ask("--mode", "agent", "--web", code=1)
    assert "Babies are born" in ask("--mode", "agent")


def test_without_a_model_what_the_web_has_stands_beside_the_passages(
    opens: Opens, desk: Home, online: str, pictures: Path
) -> None:
    assert online
    with serving(desk) as running, opens(running.url) as watched:
        page = watched.open("/chat")
        expect(page.get_by_role("group", name="Mode")).to_be_hidden()
        _switch(page, "Web").click()
        _ask(page)
        expect(page.get_by_role("list", name="Passages")).to_contain_text("26 weeks")
        sources = _last(page).get_by_role("region", name="Sources")
        expect(sources.get_by_role("link", name=LAW.title)).to_have_attribute("href", LAW.url)
        page.reload()
        expect(sources.get_by_role("link", name=LAW.title)).to_have_attribute("href", LAW.url)
        expect(page.get_by_role("list", name="Passages")).to_contain_text("26 weeks")
        check_looks(page, pictures, "modes-without-model")
