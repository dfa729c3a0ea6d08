"""The page of conversations: who may open it, what it holds before its script runs."""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.api.app import Api
from backend.chat.passages import KEPT_REASON_TEXTS, PassagesReason
from backend.container import Container
from backend.store.audit import OWNER
from backend.store.llm.language_models import ModelRole
from backend.web.templates import list_navigation
from backend.web_search.service import RulesChange
from tests.support.language_models import add_model
from tests.unit.backend.api.conftest import ready
from tests.unit.backend.web.conftest import ANN, BOB


@pytest.fixture
def bob(browse: Any) -> Iterator[TestClient]:
    client: TestClient = browse(BOB)
    with ready(cast("Api", client.app)):
        yield client


def _data(page: str, name: str) -> str:
    found = re.search(rf'data-{name}="([^"]*)"', page)
    assert found
    return html.unescape(found[1])


@pytest.mark.parametrize("path", ["/chat", "/chat/0123456789abcdef"])
def test_a_member_opens_it(bob: TestClient, path: str) -> None:
    found = bob.get(path)
    assert found.status_code == 200
    assert 'id="thread"' in found.text
    assert '<a href="/chat" data-navigation="chat" aria-current="page">Chat</a>' in found.text


def test_it_is_alike_for_every_conversation(bob: TestClient) -> None:
    """Whether there is one, only the API says, which knows whose it is."""
    assert bob.get("/chat/one").text == bob.get("/chat/another").text


def test_no_question_is_cut(bob: TestClient) -> None:
    """A browser cuts what is pasted to `maxlength`, and says nothing."""
    page = bob.get("/chat").text
    boxes = re.findall(r"<textarea[^>]*question[^>]*>", page)
    assert len(boxes) == 2
    assert not any("maxlength" in box for box in boxes)
    assert "maxlength" not in bob.get("/research").text.partition("</textarea>")[0]
    assert _data(page, "longest") == "8000"


def test_it_says_what_is_deleted_with_a_conversation(bob: TestClient) -> None:
    said = "Its questions and answers, files that nothing else uses, its research and its findings"
    assert said in bob.get("/chat").text


def test_drafts_are_kept_apart_by_person(browse: Any, bob: TestClient) -> None:
    owners = {_data(one.get("/chat").text, "owner") for one in (browse(ANN), bob)}
    assert len(owners) == 2
    assert not any("@" in owner for owner in owners)


@pytest.mark.parametrize("path", ["/chat", "/shared/some"])
def test_it_says_why_passages_are_shown_of_answers_that_were_kept(
    bob: TestClient, path: str
) -> None:
    reasons = json.loads(_data(bob.get(path).text, "reasons"))
    assert reasons == {reason.value: KEPT_REASON_TEXTS[reason] for reason in PassagesReason}
    assert not [text for text in reasons.values() if "today" in text.lower()]


def test_it_names_the_model_that_an_admin_has_set(bob: TestClient, container: Container) -> None:
    assert "written from your documents" not in bob.get("/chat").text
    add_model(container, "large", "https://llm.example.com/v1", ModelRole.DEFAULT)
    for path in ("/chat", "/ask"):
        assert "written from your documents by <bdi>large</bdi>" in bob.get(path).text


@pytest.mark.parametrize("path", ["/chat", "/ask"])
def test_the_switch_of_the_web_can_be_used_once_an_admin_has_switched_it_on(
    bob: TestClient, container: Container, path: str
) -> None:
    off = "The web is switched off. An admin can switch it on."
    assert off in bob.get(path).text
    service = container.web.service(OWNER)
    service.change_rules(RulesChange(is_on=True))
    try:
        page = bob.get(path).text
        assert (_data(page, "web"), off in page) == ("on", False)
    finally:
        service.change_rules(RulesChange(is_on=False))


def test_only_admins_are_told_of_settings(browse: Any, bob: TestClient) -> None:
    assert "set a language model" in browse(ANN).get("/chat").text
    assert "set a language model" not in bob.get("/chat").text


def test_a_question_asked_once_has_its_address_still(bob: TestClient) -> None:
    page = bob.get("/ask?q=How+long+is+leave%3F").text
    assert 'data-question="How long is leave?"' in page


def test_nobody_is_led_anywhere_before_signing_in() -> None:
    assert list_navigation(None) == ()
