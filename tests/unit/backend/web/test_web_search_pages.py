"""The pages of web search, for admins."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from backend.store import web_search
from backend.store.audit import OWNER
from backend.store.web_search import Wait
from backend.web_search.providers.registry import PROVIDER_KINDS
from backend.web_search.service import ProviderChange, RulesChange
from tests.unit.backend.web.conftest import ANN, BOB

SECRET = "sk-0123456789"


@pytest.fixture
def admin(browse: Any) -> TestClient:
    client: TestClient = browse(ANN)
    return client


def _read(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_without_providers_the_page_says_so(admin: TestClient) -> None:
    shown = _read(admin.get("/web-search").text)
    assert "Search of the web off" in shown
    assert "There are none yet." in shown
    assert 'href="/web-search"' in admin.get("/models").text


@pytest.mark.parametrize("kind", list(PROVIDER_KINDS))
def test_each_kind_has_its_form(admin: TestClient, kind: str) -> None:
    shown = admin.get("/web-search", params={"add": kind}).text
    assert f'data-kind="{kind}"' in shown
    assert 'aria-current="true"' in shown
    has_key = "key" in PROVIDER_KINDS[kind].credential.model_fields
    assert ('data-path="credential.key"' in shown) is has_key


def test_the_terms_of_engines_are_named_where_they_are_added(admin: TestClient) -> None:
    shown = admin.get("/web-search?add=ddgs").text
    assert "forbid automated queries" in shown
    assert 'href="https://duckduckgo.com/terms" rel="noreferrer noopener"' in shown
    assert "forbid automated queries" in admin.get("/web-search?add=page").text
    assert "forbid automated queries" not in admin.get("/web-search?add=tavily").text


def test_a_kind_that_there_is_not_shows_the_first_form(admin: TestClient) -> None:
    assert 'data-kind="tavily"' in admin.get("/web-search?add=<b>").text


def test_providers_are_shown_in_their_order_without_their_keys(
    container: Container, admin: TestClient
) -> None:
    service = container.web.service(OWNER)
    service.add("tavily", {}, {"key": SECRET}, "first")
    service.add("searxng", {"api_url": "https://s.example.com"}, {}, "second")
    service.edit("second", ProviderChange(is_enabled=False))
    wait = Wait(until=datetime.now(UTC) + timedelta(hours=1), reason="The plan is <i>used</i> up.")
    web_search.set_wait(container.database, service.find("first").id, wait)
    service.change_rules(RulesChange(is_on=True, blocked_domains=["bad.example"]))
    page = admin.get("/web-search").text
    assert SECRET not in page
    assert "The plan is &lt;i&gt;used&lt;/i&gt; up." in page
    shown = _read(page)
    assert "Search of the web on" in shown
    assert shown.index("first waits") < shown.index("second off")
    assert "asks api.tavily.com at most 60 a minute" in shown
    assert "bad.example" in page
    fragment = admin.get("/web-search/providers").text
    assert "<html" not in fragment
    assert 'data-provider="first"' in fragment


def test_a_provider_has_a_form_with_its_settings(container: Container, admin: TestClient) -> None:
    service = container.web.service(OWNER)
    service.add("searxng", {"api_url": "https://s.example.com"}, {}, "desk")
    service.edit("desk", ProviderChange(per_minute=9))
    shown = admin.get("/web-provider/desk").text
    assert 'data-edits="desk"' in shown
    assert 'value="https://s.example.com"' in shown
    assert re.search(r'id="limit"[^>]* value="9"', shown)
    service.add("tavily", {}, {"key": SECRET}, "other")
    shown = admin.get("/web-provider/other").text
    assert "A credential is stored; it is never shown." in shown
    assert SECRET not in shown
    assert admin.get("/web-provider/none").status_code == 404


def test_the_page_is_in_chinese_where_that_is_chosen(admin: TestClient) -> None:
    shown = admin.get("/web-search?add=ddgs", headers={"Accept-Language": "zh-CN"}).text
    assert "搜索互联网" in shown
    assert "使用条款" in shown
    assert "无需密钥的公共搜索引擎" in shown


def test_members_reach_none_of_it(container: Container, browse: Any) -> None:
    bob = browse(BOB)
    container.web.service(OWNER).add("tavily", {}, {"key": SECRET}, "desk")
    for path in ("/web-search", "/web-search/providers", "/web-provider/desk"):
        assert bob.get(path).status_code == 403
    there, missing = bob.get("/web-provider/desk"), bob.get("/web-provider/none")
    assert (there.status_code, there.text) == (missing.status_code, missing.text)
