"""Conversations in Chinese: asked, stopped, failed, shared; and the pages around them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Page, expect

from backend.web.catalogs import load_messages
from tests.support.browser import Opens, check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.scripted_model import (
    Call,
    Manner,
    Refuse,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)
from tests.support.serving import Serving, serving

QUESTION = "What should a customer do when the scanner shows QX-4031?"
SLOWLY = "Slowly, one word after the other. "
CHINESE = {"locale": "zh-CN"}

Script: TypeAlias = Callable[[Request], Reply]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def server(home: Home, model: ScriptedModel) -> Iterator[Serving]:
    with serving(home, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as running:
        yield running


def _answering(text: str, manner: Manner | None = None) -> Script:
    """A model that searches, then says `text` of the first document."""

    def script(request: Request) -> Reply:
        if request.has_sources:
            number = request.sources[0]["number"]
            return Say(text.format(n=number), manner=manner or Manner())
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["QX-4031 interlock"]}))
        return Say("QX-4031 laser interlock open")

    return script


def _ask(page: Page, question: str) -> None:
    box = page.get_by_label("您的问题", exact=True)
    box.fill(question)
    box.press("Enter")


def test_a_question_is_asked_and_its_answer_shared(
    opens: Opens, server: Serving, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering("The **interlock** is open [{n}]. Close the cover [{n}]."))
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat")
        expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
        expect(page.locator(".lead")).to_have_text("用您自己的话、任何语言提问，还可以继续追问。")
        assert find_english(page) == []
        check_looks(page, pictures, "zh-chat-empty")
        _ask(page, QUESTION)
        expect(page.get_by_role("status")).to_have_text(re.compile(r"回答已完成，共 \d 处引用。"))
        page.locator(".work summary").click()
        expect(page.locator(".steps")).to_contain_text("已搜索：")
        expect(page.locator(".steps")).to_contain_text(re.compile(r"找到 \d+ 个段落"))
        expect(page.locator(".after .dim")).to_have_text(
            re.compile(r"^\d+\.\d 秒，由 scripted 回答$")
        )
        page.locator(".cite").first.focus()
        assert find_english(page) == []
        check_looks(page, pictures, "zh-chat-answer")
        page.get_by_role("button", name="好", exact=True).click()
        assert find_english(page) == []
        page.get_by_role("button", name="发送").click()
        expect(page.get_by_role("status").first).to_have_text(
            "谢谢。管理员会看到这条反馈和您的问题。"
        )
        page.get_by_role("button", name="共享", exact=True).click()
        page.get_by_role("button", name="创建链接").click()
        expect(page.locator("#sharing-said")).to_have_text("已共享。")
        assert find_english(page) == []
        page.screenshot(path=pictures / "zh-chat-sharing.png")
        page.goto(page.locator("#sharing-address").input_value())
        expect(page.locator("#what")).to_contain_text("有人共享了此对话")
        assert find_english(page) == []
        page.screenshot(path=pictures / "zh-shared.png", full_page=True)


def test_a_sentence_cites_nothing(opens: Opens, server: Serving, model: ScriptedModel) -> None:
    model.play(_answering("The interlock is open [{n}]. 25 covers are in the cellar of Leeds."))
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        expect(page.locator("sup.uncited")).to_have_text("无来源")
        expect(page.locator(".uncited-notice")).to_have_text("有 1 句话没有引用文档，已标出。")


def test_an_answer_is_stopped(
    opens: Opens, server: Serving, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering(SLOWLY * 200, Manner(delay=0.05)))
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        expect(page.locator(".steps")).to_contain_text("正在撰写回答")
        page.get_by_role("button", name="停止").click()
        expect(page.locator(".ended")).to_have_text("回答已停止。")
        expect(page.get_by_role("button", name="重新提问")).to_be_visible()
        page.reload()
        expect(page.locator(".ended")).to_have_text("回答已停止。")
        assert find_english(page) == []
        page.screenshot(path=pictures / "zh-chat-stopped.png", full_page=True)


def test_the_model_fails(
    opens: Opens, server: Serving, model: ScriptedModel, pictures: Path
) -> None:
    model.play(lambda _: Refuse(500))
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat")
        _ask(page, "Where can I leave my bike at the Leeds office?")
        said = "语言模型没有回答。请稍后重新提问。以下是最接近的段落。"
        expect(page.locator(".reason")).to_have_text(said)
        page.reload()
        # Later it is too late for the advice.
        expect(page.locator(".reason")).to_have_text("语言模型没有回答。以下是最接近的段落。")
        assert find_english(page) == []
        page.screenshot(path=pictures / "zh-chat-failed.png", full_page=True)


def test_a_conversation_is_missing(opens: Opens, server: Serving) -> None:
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat/nothing-of-this-name")
        expect(page.locator("#missing h2")).to_have_text("没有此对话")
        page = watched.open("/shared/nothing-of-this-name")
        expect(page.locator("#missing h2")).to_have_text("此链接没有共享内容，或已停止共享。")
        # A browser tells of each 404.
        watched.wrong[:] = [line for line in watched.wrong if "of 404" not in line]


@pytest.mark.parametrize(
    "path",
    ["/ask", "/ask?q=warranty", "/assistants", "/assistants/new", "/assistants/default", "/projects",
     "/sets", "/models", "/feedback"],
)  # fmt: skip
def test_a_page_says_nothing_in_english(
    opens: Opens, server: Serving, model: ScriptedModel, pictures: Path, path: str
) -> None:
    model.play(_answering("It lasts two years [{n}]."))
    with opens(server.url, **CHINESE) as watched:
        page = watched.open(path)
        if "q=" in path:
            expect(page.locator("#spent")).to_contain_text("秒")
        assert find_english(page) == []
        check_looks(page, pictures, f"zh{re.sub(r'[^a-z]', '-', path)}")


def test_what_an_account_prefers_holds_in_scripts_too(opens: Opens, server: Serving) -> None:
    """A browser that prefers Chinese, and somebody who has chosen English."""
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat")
        page.locator("[data-language-switch]").select_option("en")
        expect(page.get_by_role("button", name="Archived")).to_be_visible()
        page.get_by_label("Search your conversations").fill("zebra")
        expect(page.get_by_text("Nothing found.")).to_be_visible()


def test_scripts_and_pages_recognize_the_same_sentences(opens: Opens, server: Serving) -> None:
    translator = load_messages("zh").sentences
    known = [_filled(english) for english in translator.messages]
    texts = [*known, f"{known[0]} {known[1]}", f"{known[2]} · {known[3]}", "Nobody knows this.", ""]
    with opens(server.url, **CHINESE) as watched:
        page = watched.open("/chat")
        said = page.evaluate(
            """async texts => {
              const script = document.querySelector('script[src$="/chat.js"]').src;
              const { sentencesLoaded, translateSentence } = await import(new URL("sentences.js", script));
              await sentencesLoaded;
              return texts.map(translateSentence);
            }""",
            texts,
        )
    assert dict(zip(texts, said, strict=True)) == {
        text: translator.translate(text) for text in texts
    }


def _filled(english: str) -> str:
    """Return a text that has the form of a message."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("number"):
            return "1,200"
        return "2026-03-31" if name.startswith("date") else "today"

    return re.sub(r"%\((\w+)\)s", value, english).replace("%%", "%")
