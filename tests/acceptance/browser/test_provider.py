"""An invitation that is accepted through the identity provider, in a browser that is led there and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import DESK, check_looks
from tests.support.home import Home
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    openid_provider,
)
from tests.support.serving import Serving, serving

ANN, BEN = "ann@example.com", "ben@example.com"


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as server:
        yield server


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("provider"))


@pytest.fixture(scope="module")
def server(own_home: Home, provider: OpenIdProvider) -> Iterator[Serving]:
    """With an account of an admin."""
    settings = {
        "QUARRY_OIDC_ISSUER": provider.issuer,
        "QUARRY_OIDC_CLIENT_ID": CLIENT_ID,
        "QUARRY_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "QUARRY_OIDC_DOMAINS": "example.com",
    }
    with serving(own_home, **settings) as running:
        code = _invite(own_home, running, ANN, "admin").partition("=")[2]
        form = {"code": code, "name": "Ann Lee", "password": PASSWORD}
        assert running.client.post("/invitation", data=form).status_code == 303
        yield running


def _invite(home: Home, server: Serving, email: str, role: str) -> str:
    port = server.url.rpartition(":")[2]
    return home.quarry("users", "invite", email, "--role", role, "--port", port).out.strip()


def test_an_invitation_is_accepted_by_the_provider(
    browser: Browser, server: Serving, own_home: Home, provider: OpenIdProvider, pictures: Path
) -> None:
    link = _invite(own_home, server, BEN, "source_manager")
    with browser.new_context(viewport=DESK) as context:
        page = context.new_page()
        page.goto(link)
        check_looks(page, pictures, "invitation-by-provider")
        provider.claims |= {"email": "eve@example.com", "email_verified": True, "name": "Eve"}
        page.get_by_role("link", name="Continue with 127.0.0.1").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("knows you as eve@example.com")
        check_looks(page, pictures, "invitation-refused")
        provider.claims |= {"email": BEN, "name": "Ben Ode"}
        page.get_by_role("link", name="Continue with 127.0.0.1").press("Enter")
        page.wait_for_url(f"{server.url}/")
        page.get_by_role("link", name="Account", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("Ben Ode, ben@example.com")
        expect(page.get_by_role("link", name="Sources")).to_be_visible()
        page.goto(link)
        expect(page.get_by_role("main")).to_contain_text("invalid or no longer valid")
