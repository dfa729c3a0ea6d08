"""From the terminal to the first account, and in and out again, by the keyboard alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from tests.support.accounts import PASSWORD
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}},
}


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("accounts"))


@pytest.fixture(scope="module")
def server(own_home: Home) -> Iterator[Serving]:
    with serving(own_home) as running:
        yield running


@pytest.fixture(scope="module")
def first_account(server: Serving, own_home: Home) -> None:
    """Made if no test has made it yet."""
    if "ann@example.com" not in own_home.quarry("users", "list").out:
        code = _invite(own_home, server, "ann@example.com", "--role", "admin").partition("=")[2]
        form = {"code": code, "name": "Ann Lee", "password": PASSWORD}
        assert server.client.post("/invitation", data=form).status_code == 303


def _invite(home: Home, server: Serving, *arguments: str) -> str:
    port = server.url.rpartition(":")[2]
    return home.quarry("users", "invite", *arguments, "--port", port).out.strip()


def _check(page: Page, picture: Path) -> None:
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=picture)


def test_the_first_account(
    browser: Browser, server: Serving, own_home: Home, pictures: Path
) -> None:
    link = _invite(own_home, server, "ann@example.com", "--role", "admin")
    for look, options in LOOKS.items():
        with browser.new_context(**options) as context:  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(link)
            expect(page.get_by_role("main")).to_contain_text("ann@example.com")
            _check(page, pictures / f"invitation-{look}.png")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(link)
        expect(page.get_by_label("Your name")).to_be_focused()
        page.keyboard.type("Ann Lee")
        page.keyboard.press("Tab")
        page.keyboard.type("aaaaaaaaaaaaaaaa")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("different characters")
        expect(page.get_by_label("Your name")).to_have_value("Ann Lee")
        expect(page.get_by_label("Password")).to_be_focused()
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        assert page.url == f"{server.url}/"
        assert page.evaluate("document.cookie") == ""
        page.goto(link)
        expect(page.get_by_role("main")).to_contain_text("invalid or no longer valid")
    with browser.new_context() as context:
        context.new_page().goto(server.link)
        assert context.cookies() == []


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("first_account")
def test_signing_in(browser: Browser, server: Serving, pictures: Path, look: str) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{server.url}/audit?source=x")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        expect(page.get_by_label("E-mail address")).to_be_focused()
        _check(page, pictures / f"sign-in-{look}.png")
        page.keyboard.type("ann@example.com")
        page.keyboard.press("Tab")
        page.keyboard.type("a wrong password")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("The address or the password is not right.")
        expect(page.get_by_label("Password")).to_be_focused()
        _check(page, pictures / f"sign-in-refused-{look}.png")
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Audit")
        assert page.url == f"{server.url}/audit?source=x"
        _check(page, pictures / f"audit-{look}.png")
        page.get_by_role("link", name="Account", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("this session")
        _check(page, pictures / f"account-{look}.png")
        page.get_by_role("main").get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def _kept_answers(page: Page) -> int:
    """How many answers the storage of the tab holds."""
    keys = 'Object.keys(sessionStorage).filter((one) => one.startsWith("turn "))'
    return int(page.evaluate(f"{keys}.length"))


@pytest.mark.usefixtures("first_account")
def test_a_tab_keeps_no_answer_for_who_comes_next(browser: Browser, server: Serving) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        for leave in ("signs out", "is signed out"):
            _sign_in(page, server, "/account")
            page.goto(f"{server.url}/ask?q=leave")
            expect(page.get_by_role("button", name="Copy")).to_be_visible()
            page.goto(f"{server.url}/account")
            page.go_back()
            assert _kept_answers(page) == 1, leave
            if leave == "signs out":
                page.get_by_role("button", name="Sign out").click()
            else:
                context.clear_cookies()
                page.goto(f"{server.url}/account")
            expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
            assert _kept_answers(page) == 0, leave


def _sign_in(page: Page, server: Serving, path: str) -> None:
    page.goto(f"{server.url}{path}")
    page.get_by_label("E-mail address").fill("ann@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}{path}")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("first_account")
def test_looking_after_people(browser: Browser, server: Serving, pictures: Path, look: str) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        _sign_in(page, server, "/people")
        page.get_by_label("E-mail address").focus()
        page.keyboard.type(f"bob-{look}@example.com")
        page.keyboard.press("Tab")
        expect(page.get_by_label("Role")).to_be_focused()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Make a link").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("/invitation?code=")
        _check(page, pictures / f"people-{look}.png")
        page.get_by_role("link", name="Ann Lee", exact=True).press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Ann Lee")
        page.get_by_role("button", name="Disable").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("the only active admin")
        page.get_by_role("button", name="Make a link").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("/password-reset?code=")
        _check(page, pictures / f"person-{look}.png")
        link = page.get_by_role("status").locator("code").inner_text()
        _make_group(page, pictures, look)
        page.goto(link)
        expect(page.get_by_label("New password")).to_be_focused()
        _check(page, pictures / f"password-reset-{look}.png")


def _make_group(page: Page, pictures: Path, look: str) -> None:
    page.get_by_role("navigation", name="Accounts").get_by_role("link", name="Groups").press(
        "Enter"
    )
    page.get_by_label("Name").fill(f"Human Resources {look}")
    page.keyboard.press("Enter")
    page.get_by_label("Address of somebody").fill("ann@example.com")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 member")).to_be_visible()
    _check(page, pictures / f"group-{look}.png")
    page.get_by_role("link", name="Groups").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
    _check(page, pictures / f"groups-{look}.png")
    page.get_by_role("link", name="Tokens").press("Enter")
    page.get_by_label("Name").fill(f"reports-{look}")
    page.get_by_role("checkbox", name="search").check()
    page.get_by_role("button", name="Create token").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("qry_")
    _check(page, pictures / f"tokens-{look}.png")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("first_account")
def test_setting_language_models(
    browser: Browser, server: Serving, pictures: Path, look: str
) -> None:
    def reply(request: Request) -> Reply:
        if request.tool_names:
            return Call(ToolUse("note", {"text": "ready"}))
        return Say("One, two, three, four, five.")

    with ScriptedModel(reply) as model, browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        _sign_in(page, server, "/models")
        page.get_by_label("Name").focus()
        for text in (f"large-{look}", model.base_url, "large-2026", "sk-secret"):
            page.keyboard.type(text)
            page.keyboard.press("Tab")
        page.get_by_role("checkbox", name="Default: writes").press("Space")
        page.get_by_role("button", name="Add model").press("Enter")
        page.get_by_role("button", name=f"Test large-{look}").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("It calls tools.")
        _check(page, pictures / f"model-{look}.png")
        page.get_by_label("Base URL").fill("http://169.254.169.254/v1")
        page.get_by_role("button", name="Save").press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()
        _check(page, pictures / f"model-refused-{look}.png")
        page.get_by_role("link", name="Models").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Language models")
        _check(page, pictures / f"models-{look}.png")
        page.get_by_role("link", name=f"large-{look}").press("Enter")
        page.get_by_role("button", name="Remove model").press("Enter")
        dialog = page.get_by_role("dialog", name="Remove this model?")
        expect(dialog).to_contain_text("its key are deleted")
        _check(page, pictures / f"model-removing-{look}.png")
        dialog.get_by_role("button", name="Remove", exact=True).press("Enter")
        expect(page.get_by_role("link", name=f"large-{look}")).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("first_account")
def test_setting_budgets_of_groups(
    browser: Browser, server: Serving, own_home: Home, pictures: Path, look: str
) -> None:
    assert own_home.quarry("groups", "create", f"research-{look}").code == 0
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        _sign_in(page, server, "/models")
        section = page.get_by_role("region", name="Budgets of groups")
        section.get_by_label("Group", exact=True).select_option(f"research-{look}")
        section.get_by_label("Tokens a day").focus()
        page.keyboard.type("250000")
        page.keyboard.press("Enter")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=f"research-{look}"))
        expect(row).to_contain_text("250,000")
        _check(page, pictures / f"budgets-{look}.png")
        remove = f"Remove the budget of research-{look}"
        page.get_by_role("button", name=remove).press("Enter")
        expect(page.get_by_role("link", name=f"research-{look}")).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("first_account")
def test_setting_budgets_of_people(
    browser: Browser, server: Serving, pictures: Path, look: str
) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        _sign_in(page, server, "/models")
        section = page.get_by_role("region", name="Budgets of people")
        section.get_by_label("Address of somebody").focus()
        page.keyboard.type("nobody@example.com")
        page.keyboard.press("Tab")
        page.keyboard.type("250000")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("There is no account of nobody")
        address = section.get_by_label("Address of somebody")
        expect(address).to_have_value("nobody@example.com")
        address.fill("ann@example.com")
        page.keyboard.press("Enter")
        row = section.get_by_role("row").filter(has_text="ann@example.com")
        expect(row).to_contain_text("250,000")
        _check(page, pictures / f"person-budgets-{look}.png")
        page.get_by_role("button", name="Remove the budget of ann@example.com").press("Enter")
        expect(section.get_by_role("table")).to_have_count(0)
