"""What research found, in a browser: searched, read, corrected, deleted and imported by keyboard and by touch, in both languages."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Opens, check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.serving import Serving, serving

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
LEAVE, RAIN = "Parents have 26 weeks of paid leave.", "Tomorrow it rains in Lyon."


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    with serving(home) as running:
        yield running


@pytest.fixture
def address(server: Serving) -> str:
    """Of a server that has found nothing out."""
    for one in server.client.get("/api/knowledge", params={"limit": 100}).json()["items"]:
        assert server.client.delete(f"/api/knowledge/{one['id']}").status_code == 204
    return server.url


def _make_file(*others: Mapping[str, object]) -> str:
    page = {
        "exact_quote": RAIN, "url": "https://sky.example/lyon", "title": "Weather for Lyon",
        "relevance_score": 0.9, "answer_chunk": RAIN, "answer_chunk_position": [0, len(RAIN)],
        "span": [0, len(RAIN)],
    }  # fmt: skip
    items = [
        {"question": "How long is parental leave?", "answer": LEAVE, "type": "qa"},
        {"question": "What is the weather in Lyon?", "answer": RAIN, "type": "url", "references": [page]},
    ]  # fmt: skip
    return json.dumps({"items": [*items, *others]})


def _keep(server: Serving, *others: Mapping[str, object]) -> None:
    made = server.client.post("/api/knowledge", json=json.loads(_make_file(*others)))
    assert made.status_code == 201, made.text


def test_findings_are_searched_corrected_and_deleted_by_keyboard(
    opens: Opens, server: Serving, address: str, pictures: Path
) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        page.get_by_role("link", name="What research found").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("What research found")
        expect(page.get_by_text("Nothing yet.")).to_be_visible()
        check_looks(page, pictures, "knowledge-none")
        _keep(server)
        page.reload()
        expect(page.locator(".findings > li")).to_have_count(2)
        check_looks(page, pictures, "knowledge")
        box = page.get_by_role("searchbox", name="Search the findings")
        box.fill("weather Lyon")
        box.press("Enter")
        expect(page.locator(".findings > li")).to_have_count(1)
        expect(page.locator(".findings")).to_contain_text("From the web")
        page.get_by_role("link", name="What is the weather in Lyon?").press("Enter")
        expect(page.get_by_role("link", name="Weather for Lyon")).to_be_visible()
        check_looks(page, pictures, "knowledge-item")
        _correct(page)
        _delete(page)


def _correct(page: Page) -> None:
    answer = page.get_by_role("textbox", name="Answer")
    expect(answer).to_have_value(RAIN)
    answer.fill("Tomorrow the sun shines.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("p.finding").first).to_have_text("Tomorrow the sun shines.")
    expect(page.get_by_role("link", name="Weather for Lyon")).to_have_count(0)
    expect(page.locator(".about")).to_contain_text("Corrected")


def _delete(page: Page) -> None:
    delete = page.get_by_role("button", name="Delete")
    dialog = page.get_by_role("dialog", name="Delete this finding?")
    delete.press("Enter")
    expect(dialog).to_contain_text("What is the weather in Lyon?")
    page.keyboard.press("Escape")
    expect(delete).to_be_focused()
    delete.press("Enter")
    dialog.get_by_role("button", name="Delete").press("Enter")
    expect(page.locator(".findings > li")).to_have_count(1)
    expect(page.locator(".findings")).to_contain_text(LEAVE)


def test_on_a_phone_in_the_dark_and_in_chinese(
    opens: Opens, server: Serving, address: str, pictures: Path
) -> None:
    long = {"question": "育婴假有多长？" * 20, "answer": "父母有 26 周带薪假。" * 60, "type": "qa"}
    _keep(server, long)
    with opens(address, locale="zh-CN", color_scheme="dark", **PHONE) as watched:
        page = watched.open("/knowledge")
        expect(page.get_by_role("heading", level=1)).to_have_text("研究所得")
        kept = f"{LEAVE} {RAIN} How long is parental leave? What is the weather in Lyon?"
        assert [one for one in find_english(page) if one not in kept] == []
        check_looks(page, pictures, "knowledge-zh")
        page.set_viewport_size({"width": 390, "height": 844})
        page.screenshot(path=pictures / "knowledge-zh-long.png", full_page=True)
        delete = page.locator(".findings > li").first.get_by_role("button", name="删除")
        delete.tap()
        dialog = page.get_by_role("dialog", name="删除这条结果？")
        page.screenshot(path=pictures / "knowledge-zh-deleting.png")
        dialog.get_by_role("button", name="删除").tap()
        expect(page.locator(".findings > li")).to_have_count(2)


def test_a_file_is_chosen_and_imported(
    opens: Opens, address: str, pictures: Path, tmp_path: Path
) -> None:
    lost = {
        "question": "Who?", "answer": "Nobody.", "type": "qa",
        "references": [
            {
                "exact_quote": "x", "url": "", "document_id": "wiki:none.md", "title": "",
                "relevance_score": 1, "answer_chunk": "", "answer_chunk_position": [0, 0],
                "span": [0, 1],
            }
        ],
    }  # fmt: skip
    file, other = tmp_path / "knowledge.json", tmp_path / "other.json"
    file.write_text(_make_file(lost), "utf-8")
    other.write_text("no JSON", "utf-8")
    with opens(address) as watched:
        page = watched.open("/knowledge")
        page.get_by_label("A file that was exported").set_input_files(other)
        expect(page.get_by_text("The file is no JSON.")).to_be_visible()
        page.get_by_label("A file that was exported").set_input_files(file)
        expect(page.get_by_role("status").first).to_contain_text("3 findings were imported.")
        expect(page.get_by_role("status").first).to_contain_text("One reference was dropped")
        expect(page.locator(".findings")).to_contain_text("Stale")
        check_looks(page, pictures, "knowledge-imported")


def test_without_scripts_the_pages_work(opens: Opens, address: str) -> None:
    with opens(address, java_script_enabled=False) as watched:
        page = watched.open("/knowledge")
        page.get_by_role("textbox", name="Or its text").fill(_make_file())
        page.get_by_role("button", name="Import").click()
        expect(page.get_by_text("2 findings were imported.")).to_be_visible()
        page.locator(".findings > li").first.get_by_role("button", name="Delete").click()
        expect(page.locator(".findings > li")).to_have_count(1)
