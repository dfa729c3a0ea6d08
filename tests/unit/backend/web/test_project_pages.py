"""The pages of projects: for those who are in one, and nothing in them taken as markup."""

import html
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.api.app import Api
from backend.container import Container
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.assistant_values import LONGEST_INSTRUCTIONS
from backend.store.accounts import people
from backend.store.chat import conversations, new_messages, projects
from backend.store.chat.new_messages import ConversationSetting, NewQuestion
from backend.store.owner import ConversationOwner
from tests.support.conversations import START, finish, make_answer, writer
from tests.unit.backend.api.conftest import ready
from tests.unit.backend.web.conftest import ANN, BOB

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def clients(browse: Any) -> Iterator[dict[str, TestClient]]:
    with ExitStack() as stack:
        made: dict[str, TestClient] = {email: browse(email) for email in (ANN, BOB)}
        for client in made.values():
            stack.enter_context(ready(cast("Api", client.app)))
        yield made


def _owner(container: Container, email: str) -> ConversationOwner:
    return ConversationOwner(people.get_by_email(container.database, email).id)


def _add(container: Container, *members: str, name: str = "Depot") -> str:
    """A project of Ann."""
    database = container.database
    added = projects.add(database, _owner(container, ANN), name, name, START)
    for email in members:
        projects.add_member(database, added, email)
    return added


def _begin(
    container: Container,
    email: str,
    project: str,
    text: str,
    *losses: dict[str, str],
    documents: tuple[str, ...] = (),
    answer: dict[str, Any] | None = None,
) -> str:
    begun = new_messages.begin_conversation(
        container.database,
        _owner(container, email),
        text,
        NewQuestion(text=text, filters={}),
        writer(),
        ConversationSetting(project_id=project),
    )
    answer = answer or make_answer(text, *documents)
    finish(container.database, begun.answer.id, text, documents, answer, losses)
    return begun.question.conversation_id


def test_a_project_of_others_and_a_missing_one_look_alike(
    container: Container, clients: dict[str, TestClient]
) -> None:
    own = _add(container)
    hidden, missing = (clients[BOB].get(f"/projects/{one}") for one in (own, "never-was"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.text == missing.text
    assert own not in clients[BOB].get("/projects").text
    assert f"/projects/{own}" in clients[ANN].get("/chat").text


def test_what_one_may_do_is_offered(container: Container, clients: dict[str, TestClient]) -> None:
    project = _add(container, BOB)
    ann, bob = (clients[one].get(f"/projects/{project}").text for one in (ANN, BOB))
    assert "Its conversations and research stay with those who asked" in ann
    assert "Its findings are deleted." in ann
    assert ("Delete project" in ann, "Leave project" in ann) == (True, False)
    assert ("Delete project" in bob, "Leave project" in bob) == (False, True)
    assert "Address of a colleague" not in bob
    # Who may change it tries what they change.
    for given in (f'data-address="/api/projects/{project}/try"', "project_editor.js"):
        assert (given in ann, given in bob) == (True, False)


def test_the_list_says_whose_each_is_and_what_is_in_it(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project, empty = _add(container, BOB), _add(container, BOB, "eve@example.com", name="Yard")
    for number in range(12):
        _begin(container, BOB, project, f"When, {number}?")
    _begin(container, ANN, project, "Where?")
    said = {email: clients[email].get("/projects").text for email in (ANN, BOB)}
    counts = "· 1 member · 0 files · 13 conversations · last used"
    assert counts in said[ANN]
    assert counts in said[BOB]
    assert "· 2 members · 0 files · 0 conversations · not used yet" in said[ANN]
    assert ("Your project" in said[ANN], "Your project" in said[BOB]) == (True, False)
    assert (
        f'href="/projects/{empty}"><bdi>Yard</bdi></a><br>\n<span class="hint">Owned by'
        in said[BOB]
    )
    # Many conversations do not push the rest of the page down.
    assert "<summary>3 more</summary>" in clients[BOB].get(f"/projects/{project}").text
    projects.remove_person(container.database, project, _owner(container, BOB).person_id or 0)
    assert "· 0 members · 0 files · 1 conversation ·" in clients[ANN].get("/projects").text


def test_what_is_lost_is_asked_before_a_project_is_deleted(
    container: Container, clients: dict[str, TestClient]
) -> None:
    page = clients[ANN].get(f"/projects/{_add(container)}").text
    assert 'data-asks="Depot" data-dialog="deleting-project"' in page
    assert '<dialog id="deleting-project"' in page
    assert page.index('name="instructions"') < page.index('id="shared-files-title"')


def test_it_is_said_before_that_files_leave_with_those_who_leave(
    container: Container, clients: dict[str, TestClient]
) -> None:
    page, bob = f"/projects/{_add(container, BOB)}", clients[BOB]
    assert "The files that you added leave with you." in bob.get(page).text
    assert "files of a removed member" in clients[ANN].get(page).text
    assert "您添加的文件也会随您移出项目" in bob.get(page, headers={"Accept-Language": "zh"}).text
    routes = cast("Api", bob.app).openapi()["paths"]
    described = routes["/api/projects/{project_id}/members/{member_id}"]["delete"]["description"]
    assert "the files that they added leave with them" in described


def test_ones_own_conversation_is_where_it_is_asked_on(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project = _add(container, BOB)
    conversation = _begin(container, BOB, project, "When?")
    path = f"/projects/{project}/conversations/{conversation}"
    led = clients[BOB].get(path, follow_redirects=False)
    assert led.headers["location"] == f"/chat/{conversation}"
    read = clients[ANN].get(path)
    assert "Asked by <bdi>Bob</bdi>" in read.text
    kept = conversations.get(container.database, _owner(container, BOB), conversation)
    assert kept.project_id == project


LOST = {"step": "follow_up", "reason": "<b>It</b> may be of anything."}


def test_what_an_answer_was_written_without_is_said_in_the_language_of_the_reader(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project = _add(container, BOB)
    conversation = _begin(container, BOB, project, "When?", LOST)
    path = f"/projects/{project}/conversations/{conversation}"
    said = ": &lt;b&gt;It&lt;/b&gt; may be of anything.</p>"
    assert f"Done without what was said before{said}" in clients[ANN].get(path).text
    chinese = clients[ANN].get(path, headers={"Accept-Language": "zh"}).text
    assert "未采用之前的对话内容" in chinese


def test_what_an_answer_cites_and_lost_is_for_those_who_may_read_its_sources(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project = _add(container, BOB)
    conversation = _begin(container, BOB, project, "When?", LOST, documents=("hidden:pay.md",))
    page = clients[ANN].get(f"/projects/{project}/conversations/{conversation}").text
    assert WITHHELD in page
    assert "Done without" not in page
    assert "data-citations" not in page
    assert "pay.md" not in page


def test_the_cards_of_its_citations_say_where_the_source_is_from_and_of_when(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project, answer = _add(container, BOB), make_answer("26 weeks.", "a:x", "b:y")
    answer["documents"][0] |= {"source": "wiki", "updated_at": "2026-03-02T09:30:00Z"}
    conversation = _begin(container, BOB, project, "When?", answer=answer)
    page = clients[ANN].get(f"/projects/{project}/conversations/{conversation}").text
    (written,) = re.findall('data-citations="([^"]+)"', page)
    cards = json.loads(html.unescape(written))
    assert [(one["title"], one["source"], one["date"]) for one in cards] == [
        ("Title of a:x", "wiki", "2026-03-02T09:30:00Z"),
        ("Title of b:y", "", None),
    ]


def test_nothing_that_is_written_is_markup(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project = _add(container, BOB, name=HOSTILE)
    conversation = _begin(container, BOB, project, HOSTILE)
    for path in (
        "/projects",
        f"/projects/{project}",
        f"/projects/{project}/conversations/{conversation}",
        "/chat",
    ):
        page = clients[ANN].get(path).text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page


def test_what_was_typed_is_shown_again_where_it_is_refused(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project = _add(container)
    long = "a" * (LONGEST_INSTRUCTIONS + 1)
    refused = clients[ANN].post(
        f"/projects/{project}/change", data={"name": "The depot", "instructions": long}
    )
    assert refused.status_code == 422
    # The stored texts stand beside: by them the script knows what is changed.
    assert 'value="The depot" data-stored="Depot"' in refused.text
    assert f">{long}</textarea>" in refused.text
    assert 'data-stored="Depot" aria-describedby="instructions-help"' in refused.text
    assert "<h1><bdi>Depot</bdi></h1>" in refused.text


def test_a_line_break_of_a_form_is_one_character(
    container: Container, clients: dict[str, TestClient]
) -> None:
    project = _add(container)
    lines = "a\r\n" * (LONGEST_INSTRUCTIONS // 2 - 1) + "a"
    page = f"/projects/{project}"
    made = clients[ANN].post(
        "/projects", data={"name": "Yard", "instructions": lines}, follow_redirects=False
    )
    changed = clients[ANN].post(
        f"{page}/change", data={"instructions": lines}, follow_redirects=False
    )
    assert (made.status_code, changed.status_code) == (303, 303)
    kept = projects.get(container.database, _owner(container, ANN), project)
    assert kept.instructions == lines.replace("\r\n", "\n")
