"""The pages of assistants: whose are shown, what may be set by whom, and that nothing in them is taken as markup."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.access.groups import GroupService
from backend.api.app import Api
from backend.container import Container
from backend.store.accounts import people
from backend.store.chat import assistants
from backend.store.chat.assistants import AssistantValues, Visibility
from backend.store.documents import document_sets
from backend.store.documents.document_sets import SetValues
from backend.store.llm import language_models
from backend.store.owner import ConversationOwner
from tests.support.conversations import START
from tests.support.language_models import make_values
from tests.unit.backend.api.conftest import ready
from tests.unit.backend.web.conftest import ANN, BOB

HOSTILE = '"><script>alert(1)</script>'
ESCAPED = "&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture
def clients(browse: Any) -> Iterator[dict[str, TestClient]]:
    with ExitStack() as stack:
        made: dict[str, TestClient] = {email: browse(email) for email in (ANN, BOB)}
        for client in made.values():
            stack.enter_context(ready(cast("Api", client.app)))
        yield made


def _add(container: Container, email: str, **values: Any) -> str:
    owner = ConversationOwner(people.get_by_email(container.database, email).id)
    named = AssistantValues(**{"name": "Travel desk", **values})
    return assistants.add(container.database, owner, named, START)


def test_the_gallery_shows_what_one_may_use(
    container: Container, clients: dict[str, TestClient]
) -> None:
    own = _add(container, BOB)
    shared = _add(container, ANN, name="For all", visibility=Visibility.ALL)
    _add(container, ANN, name="Of Ann")
    page = clients[BOB].get("/assistants").text
    assert "Of Ann" not in page
    for link in (f"/chat?assistant={own}", f"/chat?assistant={shared}", 'href="/chat"'):
        assert link in page
    assert "Edit Travel desk" in page
    assert "Details of For all" in page
    assert "By <bdi>Ann</bdi>, for everybody" in page


def test_somebody_elses_and_a_missing_one_look_alike(
    container: Container, clients: dict[str, TestClient]
) -> None:
    own = _add(container, ANN)
    hidden, missing = (clients[BOB].get(f"/assistants/{one}") for one in (own, "never-was"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert "There is no such assistant." in hidden.text
    assert hidden.text == missing.text


def test_only_admins_are_offered_to_share(
    container: Container, clients: dict[str, TestClient]
) -> None:
    GroupService(container.database).create("support")
    member, admin = (clients[one].get("/assistants/new").text for one in (BOB, ANN))
    assert "support" not in member
    assert "An admin can share an assistant." in member
    assert 'name="group" value="support"' in admin


def test_a_former_admin_sees_who_uses_what_they_shared_and_may_keep_it_for_themselves(
    container: Container, clients: dict[str, TestClient]
) -> None:
    GroupService(container.database).create("support")
    for_all = _add(container, BOB, visibility=Visibility.ALL)
    for_support = _add(container, BOB, visibility=Visibility.GROUPS, groups=("support",))
    pages = {one: clients[BOB].get(f"/assistants/{one}").text for one in (for_all, for_support)}
    for one, now in ((for_all, "all"), (for_support, "groups")):
        assert "Only you can use it" not in pages[one]
        assert 'name="visibility" value="mine">' in pages[one]
        assert f'name="visibility" value="{now}" checked>' in pages[one]
        assert "keep the assistant for yourself" in pages[one]
    assert "<bdi>support</bdi>" in pages[for_support]


def test_limits_that_are_not_shown_are_said_beside_those_that_are(
    container: Container, clients: dict[str, TestClient]
) -> None:
    document_sets.add(
        container.database,
        SetValues(name="Policies", description="", readers=frozenset({"public"}), rules=()),
    )
    label = document_sets.find(container.database, "Policies").label
    shown = _add(container, ANN, sets=(label,))
    partly = _add(container, ANN, sets=(label, "#4711"))
    hint = "also limited to sources or document sets that were deleted or that you may not read"
    assert hint not in clients[ANN].get(f"/assistants/{shown}").text
    assert hint in clients[ANN].get(f"/assistants/{partly}").text


def test_one_whose_groups_were_deleted_says_so(
    container: Container, clients: dict[str, TestClient]
) -> None:
    GroupService(container.database).create("support")
    made = _add(container, ANN, visibility=Visibility.GROUPS, groups=("support",))
    assert "Its groups were deleted." not in clients[ANN].get(f"/assistants/{made}").text
    GroupService(container.database).delete("support")
    assert "Its groups were deleted." in clients[ANN].get(f"/assistants/{made}").text


def test_document_sets_are_no_sources(container: Container, clients: dict[str, TestClient]) -> None:
    document_sets.add(
        container.database,
        SetValues(name="Policies", description="", readers=frozenset({"public"}), rules=()),
    )
    page = clients[ANN].get("/assistants/new").text
    of_sources = page.partition("<legend>Sources</legend>")[2].partition("</fieldset>")[0]
    assert "<fieldset" not in of_sources
    assert "<legend>Document sets</legend>" in page


def test_the_form_says_how_many_starters_there_may_be(clients: dict[str, TestClient]) -> None:
    page = clients[ANN].get("/assistants/new").text
    assert "at most 8, each of at most 200 characters" in page


def test_of_the_default_one_only_what_it_says_is_set(clients: dict[str, TestClient]) -> None:
    page = clients[ANN].get("/assistants/default").text
    assert 'id="instructions"' in page
    for name in ("name", "scope", "model", "temperature", "visibility", "remove"):
        assert f'id="{name}"' not in page
    assert 'id="instructions"' not in clients[BOB].get("/assistants/default").text


def test_nothing_that_is_set_is_markup(
    container: Container, clients: dict[str, TestClient]
) -> None:
    shared = _add(
        container,
        ANN,
        name=HOSTILE,
        description=HOSTILE,
        instructions=f"</textarea>{HOSTILE}",
        starters=(HOSTILE,),
        sets=(HOSTILE,),
        visibility=Visibility.ALL,
    )
    for email in (ANN, BOB):
        for path in ("/assistants", f"/assistants/{shared}"):
            page = clients[email].get(path).text
            assert "<script>alert" not in page
            assert "</textarea>&#34;" not in page
            assert ESCAPED in page


def test_a_model_that_was_removed_is_named(
    container: Container, clients: dict[str, TestClient]
) -> None:
    for name in ("large", "small"):
        values = make_values(name, "https://llm.example.com/v1")
        language_models.add(container.database, values, None)
    made = _add(container, ANN, model="large", visibility=Visibility.ALL)
    assert "no longer available" not in clients[ANN].get(f"/assistants/{made}").text
    found = language_models.find(container.database, "large")
    language_models.remove(container.database, found.id)
    editor, details = (clients[one].get(f"/assistants/{made}").text for one in (ANN, BOB))
    assert '<option value="large" selected>large (no longer available)</option>' in editor
    assert "The language model <bdi>large</bdi> is no longer available." in editor
    assert "<bdi>large</bdi> (no longer available; the default one answers instead)" in details


def test_a_chat_begins_with_the_starters_of_the_default_one(
    container: Container, clients: dict[str, TestClient]
) -> None:
    found = assistants.find(container.database, assistants.DEFAULT_ID)
    assert found
    values = AssistantValues(
        name=found.values.name, starters=("Who fixes it?",), visibility=Visibility.ALL
    )
    assistants.change(container.database, found.id, values, START)
    assert 'data-try="Who fixes it?"' in clients[BOB].get("/chat").text


def test_where_the_set_that_limits_one_is_removed_it_says_that_nothing_is_found(
    container: Container, clients: dict[str, TestClient]
) -> None:
    database = container.database
    values = SetValues(name="Policies", description="", readers=frozenset({"public"}), rules=())
    document_sets.add(database, values)
    label = document_sets.make_label(document_sets.find(database, "Policies").id)
    shared = _add(container, ANN, sets=(label,), visibility=Visibility.ALL)
    pages = dict.fromkeys((ANN, BOB), f"/assistants/{shared}")
    said = {ANN: "It finds none of their documents for you", BOB: "Nothing that you may read now."}
    for email, path in pages.items():
        assert said[email] not in clients[email].get(path).text
        assert not clients[email].get(f"/api{path}").json()["finds_nothing"]
    document_sets.remove(database, document_sets.find(database, "Policies").id)
    for email, path in pages.items():
        assert said[email] in clients[email].get(path).text
        found = clients[email].get(f"/api{path}").json()
        assert (found["limited"], found["finds_nothing"]) == (True, True)
