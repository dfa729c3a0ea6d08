"""A program is connected in a browser: it registers, asks, the person signs in and allows it, and a code arrives."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.oauth import CLIENT, make_challenge, parse_response
from tests.support.serving import Serving, serving

ANN = "ann@example.com"
VERIFIER = "v" * 43
HOSTILE = "Quarry <b>verified</b>\u202e " + "w" * 70


class Listener:
    """The program, which waits at a port of this machine for the person to come back."""

    def __init__(self) -> None:
        self.arrived: Queue[str] = Queue()
        arrived = self.arrived

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/callback"):
                    arrived.put(self.path)
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(b"<title>Done</title><h1>You can close this page.</h1>")

            def log_message(self, *args: object) -> None:
                del args

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/callback"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def read(self) -> dict[str, str]:
        return parse_response(self.arrived.get(timeout=20))


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("oauth"))


@pytest.fixture(scope="module")
def server(own_home: Home, browser: Browser) -> Iterator[Serving]:
    """With the account of Ann, an admin."""
    with serving(own_home) as running:
        port = ("--port", running.url.rpartition(":")[2])
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(own_home.quarry("users", "invite", ANN, "--role", "admin", *port).out.strip())
            page.get_by_label("Your name").fill("Ann Lee")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Create account").click()
            expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        yield running


def _register(server: Serving, **changed: Any) -> str:
    answer = httpx.post(f"{server.url}/oauth/register", json=CLIENT | changed)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["client_id"])


def _ask(page: Page, server: Serving, listener: Listener, client: str, **changed: str) -> None:
    fields = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": listener.address,
        "state": "a state",
        "code_challenge": make_challenge(VERIFIER),
        "code_challenge_method": "S256",
        "resource": server.url,
        **changed,
    }
    page.goto(f"{server.url}/oauth/authorize?{httpx.QueryParams(fields)}")


def _sign_in(page: Page, password: str = "Password", button: str = "Sign in") -> None:
    page.get_by_role("textbox").first.fill(ANN)
    page.get_by_label(password).fill(PASSWORD)
    page.get_by_role("button", name=button, exact=True).click()


def _redeem(server: Serving, listener: Listener, client: str, code: str) -> dict[str, Any]:
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
    form |= {"client_id": client, "redirect_uri": listener.address}
    answer = httpx.post(f"{server.url}/oauth/token", data=form)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _read(server: Serving, tokens: dict[str, Any]) -> int:
    bearer = {"authorization": f"Bearer {tokens['access_token']}"}
    return httpx.get(f"{server.url}/api/documents", headers=bearer).status_code


def test_from_signing_in_to_a_token_and_back(
    browser: Browser, server: Serving, listener: Listener, pictures: Path
) -> None:
    client = _register(server)
    with browser.new_context() as context:
        page = context.new_page()
        _ask(page, server, listener, client)
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        _sign_in(page)
        expect(page.get_by_role("heading", level=1)).to_have_text("Connect Editor?")
        main = page.get_by_role("main")
        expect(main).to_contain_text(f"at {listener.address.split('/')[2]}")
        expect(main).to_contain_text(ANN)
        check_looks(page, pictures, "oauth-consent")

        # By the keyboard alone.
        allow = page.get_by_role("button", name="Connect", exact=True)
        page.locator("#main").focus()
        page.keyboard.press("Tab")
        expect(allow).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("You can close this page.")
        told = listener.read()
        assert (told["state"], told["iss"]) == ("a state", server.url)
        tokens = _redeem(server, listener, client, told["code"])
        assert _read(server, tokens) == 200

        page.goto(f"{server.url}/account")
        expect(page.get_by_role("main")).to_contain_text("Connected programs")
        check_looks(page, pictures, "oauth-account")
        page.goto(f"{server.url}/tokens")
        expect(page.get_by_role("main")).to_contain_text("Programs that have registered")
        check_looks(page, pictures, "oauth-tokens")
        page.goto(f"{server.url}/account")
        page.get_by_role("button", name="Disconnect Editor").click()
        expect(page.get_by_role("main")).not_to_contain_text("Connected programs")
        assert _read(server, tokens) == 401


def test_who_refuses_is_led_back(
    browser: Browser, server: Serving, listener: Listener, pictures: Path
) -> None:
    client = _register(server, client_name=HOSTILE)
    with browser.new_context() as context:
        page = context.new_page()
        _ask(page, server, listener, client)
        _sign_in(page)
        expect(page.get_by_role("heading", level=1)).to_contain_text("Quarry <b>verified</b>")
        check_looks(page, pictures, "oauth-hostile-name")
        page.get_by_role("button", name="Do not connect").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("You can close this page.")
        assert listener.read() == {"error": "access_denied", "state": "a state", "iss": server.url}
        _ask(page, server, listener, client, code_challenge_method="plain")
        expect(page.get_by_role("heading", level=1)).to_have_text("The program cannot be connected")
        check_looks(page, pictures, "oauth-refused")
        page.get_by_role("link", name="Back to").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("You can close this page.")
        assert listener.read()["error"] == "invalid_request"


def test_in_chinese(browser: Browser, server: Serving, listener: Listener, pictures: Path) -> None:
    client = _register(server)
    with browser.new_context(locale="zh-CN") as context:
        page = context.new_page()
        _ask(page, server, listener, client)
        _sign_in(page, "密码", "登录")
        expect(page.get_by_role("heading", level=1)).to_have_text("要连接 Editor 吗？")
        assert find_english(page) == []
        check_looks(page, pictures, "zh-oauth-consent")
        page.get_by_role("button", name="连接", exact=True).click()
        told = listener.read()
        assert _read(server, _redeem(server, listener, client, told["code"])) == 200
        page.goto(f"{server.url}/account")
        expect(page.get_by_role("main")).to_contain_text("已连接的程序")
        check_looks(page, pictures, "zh-oauth-account")
        _ask(page, server, listener, client, scope="admin")
        expect(page.get_by_role("alert")).to_have_text("此服务器的作用域为 search and ask。")
        check_looks(page, pictures, "zh-oauth-refused")


def test_without_accounts_the_page_says_how_to_make_them(
    browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    with serving(Home(tmp_path)) as running, browser.new_context() as context:
        page = context.new_page()
        answer = page.goto(f"{running.url}/oauth/authorize?client_id=x")
        assert answer
        assert answer.status == 404
        expect(page.get_by_role("main")).to_contain_text("quarry users invite")
        check_looks(page, pictures, "oauth-without-accounts")
        metadata = httpx.get(f"{running.url}/.well-known/oauth-authorization-server")
        assert metadata.status_code == 404
        assert "no accounts" in metadata.json()["detail"]
