"""The pages in Chinese: as the browser prefers, or as somebody chooses."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.home import Home
from tests.support.serving import Serving, link_to, serving

ENGLISH = re.compile(
    r"\b(?:Search|Sources?|Filters|Updated|documents?|passages?|Add|Settings|Schedule|Remove|Sync|Open"
    r"|Readable|Kind|Language|Password|Sign|the|is|of|and|your)\b"
)
# What documents and sources are called, and what they say; names of formats.
QUOTED = "bdi, mark, code, kbd, time, .excerpt, .tries, article, input, option, .meta > span"
SHOWN = """quoted => {
  const copy = document.body.cloneNode(true);
  for (const one of copy.querySelectorAll(quoted)) one.remove();
  const spoken = [...copy.querySelectorAll("[aria-label], [title]")]
    .filter(one => !one.querySelector(quoted))
    .map(one => one.getAttribute("title") ?? "");
  return copy.textContent + spoken.join(" ");
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    with serving(home) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Serving) -> Iterator[Page]:
    context = browser.new_context(locale="zh-CN", viewport={"width": 390, "height": 844})
    context.set_default_timeout(20_000)
    shown = context.new_page()
    shown.goto(link_to(server.url))
    yield shown
    context.close()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", "搜索方式"),
        ("/?q=warranty", "为何有此结果"),
        ("/?q=xqzzkwv", "请检查拼写"),
        ("/sources", "添加来源"),
        ("/source/handbook", "运行记录"),
        ("/audit", "审计日志"),
        ("/explain", "为何有人找不到某个文档"),
        ("/nowhere", "前往搜索"),
    ],
)
def test_a_page_says_nothing_in_english(
    page: Page, server: Serving, pictures: Path, path: str, said: str
) -> None:
    page.goto(server.url + path)
    expect(page.locator("main")).to_contain_text(said)
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    assert ENGLISH.findall(str(page.evaluate(SHOWN, QUOTED))) == []
    assert not page.evaluate(TOO_WIDE)
    page.screenshot(path=pictures / f"zh{re.sub(r'[^a-z]', '-', path)}.png", full_page=True)


def test_a_document_is_shown_in_chinese(page: Page, server: Serving) -> None:
    page.goto(f"{server.url}/?q=warranty")
    page.locator("[data-result]").first.click()
    expect(page.locator("aside.about")).to_contain_text("可读者")
    assert ENGLISH.findall(str(page.evaluate(SHOWN, QUOTED))) == []


def test_a_choice_holds_against_what_the_browser_prefers(page: Page, server: Serving) -> None:
    page.goto(server.url)
    page.locator("[data-language-switch]").select_option("en")
    expect(page.get_by_role("link", name="Sources")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.locator("[data-language-switch]").select_option("zh")
    expect(page.get_by_role("link", name="来源")).to_be_visible()


def test_a_script_speaks_the_language_of_the_page(page: Page, server: Serving) -> None:
    page.goto(server.url)
    page.locator("[data-theme-switch]").click()
    expect(page.locator("[data-theme-switch]")).to_have_attribute("title", "配色：浅色")
