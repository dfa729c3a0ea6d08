"""Accounts in Chinese: invited, signed in and out, another password, another language."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.serving import Serving, serving

ANOTHER = "staple battery horse correct"


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("chinese"))


@pytest.fixture(scope="module")
def server(own_home: Home) -> Iterator[Serving]:
    with serving(own_home) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(locale="zh-CN") as context:
        context.set_default_timeout(20_000)
        yield context.new_page()


def _look(page: Page, pictures: Path, name: str) -> None:
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    assert find_english(page) == []
    check_looks(page, pictures, f"zh-{name}")


def _sign_in(page: Page, password: str) -> None:
    page.get_by_label("密码").fill(password)
    page.get_by_role("button", name="登录", exact=True).click()


def test_from_the_invitation_to_another_password(
    page: Page, server: Serving, own_home: Home, pictures: Path
) -> None:
    port = ("--port", server.url.rpartition(":")[2])
    admin = ("ann@example.com", "--role", "admin")
    page.goto(own_home.quarry("users", "invite", *admin, *port).out.strip())
    expect(page.get_by_role("main")).to_contain_text("您已受邀，邀请地址为 ann@example.com")
    _look(page, pictures, "invitation")
    page.get_by_label("您的姓名").fill("李安")
    page.get_by_label("密码").fill("aaaaaaaaaaaaaaaa")
    page.get_by_role("button", name="创建账户").click()
    expect(page.get_by_role("alert")).to_contain_text("个不同的字符")
    page.get_by_label("密码").fill(PASSWORD)
    page.get_by_role("button", name="创建账户").click()
    expect(page.get_by_role("button", name="退出登录")).to_be_visible()

    page.get_by_role("link", name="账户", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("当前会话")
    _look(page, pictures, "account")
    page.get_by_role("banner").get_by_role("button", name="退出登录").click()
    page.goto(f"{server.url}/account")
    expect(page.get_by_role("heading", level=1)).to_have_text("登录")
    page.get_by_label("电子邮件地址").fill("ann@example.com")
    _sign_in(page, "a wrong password")
    expect(page.get_by_role("alert")).to_have_text("地址或密码不正确。")
    _look(page, pictures, "sign-in-refused")

    page.goto(own_home.quarry("users", "reset-password", "ann@example.com", *port).out.strip())
    expect(page.get_by_role("main")).to_contain_text("账户：ann@example.com")
    _look(page, pictures, "password-reset")
    page.get_by_label("密码").fill(ANOTHER)
    page.get_by_role("button", name="设置密码").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("登录")
    page.get_by_label("电子邮件地址").fill("ann@example.com")
    _sign_in(page, ANOTHER)
    page.goto(f"{server.url}/people")
    expect(page.get_by_role("heading", level=1)).to_have_text("人员")
    _look(page, pictures, "people")

    # What the account prefers holds against what the browser prefers.
    page.goto(f"{server.url}/account")
    page.get_by_label("页面语言").select_option("en")
    page.get_by_role("button", name="设置语言").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.goto(f"{server.url}/chat")
    expect(page.get_by_role("button", name="Archived")).to_be_visible()
    page.get_by_label("Search your conversations").fill("zebra")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
