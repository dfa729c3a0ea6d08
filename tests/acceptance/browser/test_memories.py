"""What Quarry remembers, in a browser: written, changed and deleted by keyboard and by touch, in both languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Opens, check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.serving import Serving, serving

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
OFFICE, ANSWERS = "I sit in the Leeds office, on Tuesdays and Thursdays.", "I like short answers."
LONG = "My saw has the serial number CLEAVE-C40-" + "0123456789" * 12 + ".\nIt stands in hall two."


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    with serving(home) as running:
        yield running


@pytest.fixture
def address(server: Serving) -> str:
    """Of a server that remembers nothing."""
    assert server.client.delete("/api/memories").status_code == 204
    return server.url


def _remember(server: Serving, *texts: str) -> None:
    for text in texts:
        assert server.client.post("/api/memories", json={"text": text}).status_code == 201


def _rows(page: Page) -> Locator:
    return page.locator(".memories > li")


def test_memories_are_written_changed_and_deleted_by_keyboard(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        page.get_by_role("link", name="What Quarry remembers").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("What Quarry remembers")
        expect(page.get_by_text("Nothing yet.")).to_be_visible()
        check_looks(page, pictures, "memories-none")
        for text in (OFFICE, ANSWERS, LONG):
            page.get_by_role("textbox", name="What is to be remembered").fill(text)
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            expect(_rows(page).first).to_contain_text(text)
        expect(_rows(page)).to_have_count(3)
        check_looks(page, pictures, "memories")
        _edit(page, pictures)
        _delete(page)


def _edit(page: Page, pictures: Path) -> None:
    row = _rows(page).nth(2)
    row.get_by_text("Edit").focus()
    page.keyboard.press("Enter")
    box = row.get_by_role("textbox", name="What is to be remembered")
    expect(box).to_have_value(OFFICE)
    box.fill("I sit in the Graz office.")
    check_looks(page, pictures, "memories-editing")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(_rows(page).nth(2)).to_contain_text("I sit in the Graz office.")


def _delete(page: Page) -> None:
    delete = _rows(page).nth(1).get_by_role("button", name="Delete")
    dialog = page.get_by_role("dialog", name="Delete this memory?")
    delete.press("Enter")
    expect(dialog).to_contain_text(ANSWERS)
    page.keyboard.press("Escape")
    expect(delete).to_be_focused()
    expect(_rows(page)).to_have_count(3)
    delete.press("Enter")
    dialog.get_by_role("button", name="Keep it").press("Enter")
    expect(_rows(page)).to_have_count(3)
    delete.press("Enter")
    dialog.get_by_role("button", name="Delete").press("Enter")
    expect(_rows(page)).to_have_count(2)
    page.get_by_role("button", name="Delete everything").press("Enter")
    everything = page.get_by_role("dialog", name="Delete everything that Quarry remembers of you?")
    expect(everything).to_contain_text("Memories: 2")
    everything.get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_text("Nothing yet.")).to_be_visible()


def test_on_a_phone_and_in_chinese(
    opens: Opens, server: Serving, address: str, pictures: Path
) -> None:
    _remember(server, "我在上海办公室工作。", "回答请简短一些。")
    with opens(address, locale="zh-CN", **PHONE) as watched:
        page = watched.open("/memories")
        expect(page.get_by_role("heading", level=1)).to_have_text("Quarry 记住的内容")
        assert find_english(page) == []
        check_looks(page, pictures, "memories-zh")
        page.set_viewport_size({"width": 390, "height": 844})
        _rows(page).first.get_by_role("button", name="删除").tap()
        dialog = page.get_by_role("dialog", name="删除这条记忆？")
        expect(dialog).to_contain_text("回答请简短一些。")
        page.screenshot(path=pictures / "memories-zh-deleting.png")
        dialog.get_by_role("button", name="删除").tap()
        expect(_rows(page)).to_have_count(1)
        page.get_by_role("textbox", name="要记住的内容").first.fill(" \u200b ")
        page.get_by_role("button", name="记住").tap()
        expect(page.get_by_role("alert")).to_have_text("请用可见字符写下要记住的内容。")
        # The browser reports the status of a form that was refused.
        (reported,) = watched.wrong
        assert "status of 422" in reported
        watched.wrong.clear()


def test_without_scripts_the_page_works(opens: Opens, server: Serving, address: str) -> None:
    _remember(server, OFFICE)
    with opens(address, java_script_enabled=False) as watched:
        page = watched.open("/memories")
        _rows(page).first.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("Nothing yet.")).to_be_visible()
