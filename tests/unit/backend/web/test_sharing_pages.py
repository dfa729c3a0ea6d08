"""The pages of sharing and of feedback: who may open them, and what they hold before a script runs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.api.app import Api
from backend.container import Container
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.unfinished_answer import make_unfinished_answer
from backend.store.accounts import people
from backend.store.chat import answer_feedback
from backend.store.chat.answer_feedback import Feedback
from backend.store.chat.turns import Ending
from backend.store.owner import ConversationOwner
from tests.support.conversations import START, begin, finish, make_answer, store, text_portion
from tests.unit.backend.api.conftest import ready
from tests.unit.backend.web.conftest import ANN, BOB


@pytest.fixture
def bob(browse: Any) -> Iterator[TestClient]:
    client: TestClient = browse(BOB)
    with ready(cast("Api", client.app)):
        yield client


def _say(container: Container, *documents: str, comment: str = "") -> None:
    owner = ConversationOwner(people.get_by_email(container.database, BOB).id)
    begun = begin(container.database, "<b>Why</b>?", owner)
    answer = make_answer("**Because** of the *interlock*.", *documents)
    finish(container.database, begun.answer.id, answer["answer"], documents, answer)
    said = Feedback(rating="bad", comment=comment, source=None)
    named = (begun.question.conversation_id, begun.answer.id)
    answer_feedback.put(container.database, owner, *named, said, START)


def test_the_page_is_alike_for_every_link(bob: TestClient) -> None:
    """Whether it leads anywhere, only the API says."""
    one, other = (bob.get(f"/shared/{name}") for name in ("one", "other"))
    assert one.status_code == 200
    assert one.text.replace('"one"', '"other"') == other.text


def test_an_export_is_in_the_language_of_its_asker(container: Container, bob: TestClient) -> None:
    bobs = people.get_by_email(container.database, BOB)
    begun = begin(container.database, "Why?", ConversationOwner(bobs.id))
    finish(container.database, begun.answer.id, "Because.")
    path = f"/api/conversations/{begun.question.conversation_id}/export"
    chinese = {"Accept-Language": "zh-CN, en;q=0.5"}
    assert bob.get(path).text.startswith("# Why?\n\n## Question\n\n> Why?  \n\n## Answer\n\n")
    assert "## 问题\n\n> Why?  \n\n## 回答\n\nBecause.\n" in bob.get(path, headers=chinese).text
    people.set_language(container.database, bobs.id, "en")
    assert "## Question\n" in bob.get(path, headers=chinese).text


def test_only_admins_see_feedback(browse: Any, bob: TestClient) -> None:
    assert bob.get("/feedback").status_code == 403
    page = browse(ANN).get("/feedback").text
    assert "No feedback yet." in page
    assert 'href="/feedback" aria-current="page"' in page


def test_of_what_an_admin_may_not_read_nothing_is_shown(
    container: Container, browse: Any, bob: TestClient
) -> None:
    del bob
    _say(container, "wiki:gone.md", comment="<i>No</i>")
    page = browse(ANN).get("/feedback").text
    assert "&lt;b&gt;Why&lt;/b&gt;?" in page
    assert WITHHELD in page
    # The comment may quote the answer.
    for secret in ("interlock", "gone.md", "supported", "1.50", "&lt;i&gt;No"):
        assert secret not in page


def test_an_answer_that_was_stopped_is_shown_with_its_sources(
    container: Container, browse: Any, bob: TestClient
) -> None:
    del bob
    owner = ConversationOwner(people.get_by_email(container.database, BOB).id)
    begun, text = begin(container.database, "Why?", owner), "Because [[1]](https://x.example)"
    link = "https://x.example"
    cited = {"number": 1, "document_id": link, "title": "The page", "link": link, "kind": "url"}
    answer = make_unfinished_answer(text, [cited])
    ending = Ending(message_id=begun.answer.id, status="stopped", text=text, answer=answer)
    portion = text_portion(begun.answer.id, 1, text)
    store(container.database, begun.answer.id, portion, ending, datetime.now(UTC))
    said = Feedback(rating="wrong_source", comment="", source=1)
    named = (begun.question.conversation_id, begun.answer.id)
    answer_feedback.put(container.database, owner, *named, said, START)
    page = browse(ANN).get("/feedback").text
    assert "This answer was not finished." in page
    assert "Source 1 was reported as wrong: <bdi>The page</bdi>" in page
    assert "<li>1. <bdi>The page</bdi></li>" in page
    assert "whole answer" not in page


def test_what_an_admin_may_read_is_shown_by_pages(
    container: Container, browse: Any, bob: TestClient
) -> None:
    del bob
    for number in range(21):
        _say(container, comment=f"comment {number}.")
    admin = browse(ANN)
    page = admin.get("/feedback").text
    assert "&lt;strong&gt;Because&lt;/strong&gt;" in page
    assert ("comment 20." in page, "comment 0." in page) == (True, False)
    older = page.partition('<a href="/feedback?before=')[2].partition('"')[0]
    assert "comment 0." in admin.get(f"/feedback?before={older}").text
    assert "No such feedback." in admin.get("/feedback?rating=good").text
    assert "comment 20." in admin.get("/feedback?rating=bad").text
