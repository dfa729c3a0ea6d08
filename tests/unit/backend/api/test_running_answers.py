"""A running answer ends where its asker loses what it draws on, or is recognized no more."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import Request as HttpRequest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.roles import Role
from backend.api.app import create_app
from backend.api.authorization import Asker
from backend.container import Container
from connectors.access import Readers
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Event, events
from tests.unit.backend.api.conftest import SOURCE, client_of, connected, make_container, ready

QUESTION = {"question": "In which salary band is a senior engineer?"}
PAY = f"{SOURCE}:finance/pay.md"
FINANCE, STRANGER = Readers.of("group:finance"), Readers.of()


class Rights:
    """An authenticator whose asker changes while an answer runs."""

    def __init__(self) -> None:
        self.readers: Readers | None = FINANCE

    async def authenticate(self, request: HttpRequest) -> Asker | None:
        del request
        if self.readers is None:
            return None
        return Asker(kind="local", readers=self.readers, role=Role.ADMIN)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def modelled(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, server: ScriptedModel
) -> Container:
    home = tmp_path_factory.mktemp("running")
    container = make_container(home, llm_url=server.base_url, llm_model="scripted")
    connected(container, folder)
    return container


def _answer_after(change: Callable[[], object]) -> Callable[[Request], Reply]:
    """A model that has the document when something changes, and cites it then."""

    def script(request: Request) -> Reply:
        if request.has_sources:
            change()
            return Say("A senior engineer is in band five [1]. The band was raised.")
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["salary band"]}))
        return Say("salary band engineer")

    return script


def _asked(client: TestClient) -> list[Event]:
    answer = client.post("/api/ask", json=QUESTION)
    assert answer.status_code == 200
    return list(events(answer.text.splitlines()))


def test_rights_that_stay_change_nothing(modelled: Container, server: ScriptedModel) -> None:
    server.play(_answer_after(lambda: None))
    with ready(create_app(modelled, Rights())) as client:
        answer = _asked(client)
    assert answer[-1].name == "done"
    assert [one.data["document_id"] for one in answer if one.name == "citation"] == [PAY]


@pytest.mark.parametrize(("readers", "status"), [(STRANGER, 403), (None, 401)])
def test_what_was_withdrawn_is_not_cited(
    modelled: Container, server: ScriptedModel, readers: Readers | None, status: int
) -> None:
    rights = Rights()
    server.play(_answer_after(lambda: setattr(rights, "readers", readers)))
    with ready(create_app(modelled, rights)) as client:
        answer = _asked(client)
    assert (answer[-1].name, answer[-1].data["status"]) == ("error", status)
    names = [event.name for event in answer]
    assert "selected" in names  # it was read while it might be
    assert not {"citation", "passages", "done"}.intersection(names)


def test_the_answer_to_a_token_ends_with_the_token(
    modelled: Container, server: ScriptedModel
) -> None:
    tokens = ApiTokenService(modelled.database)
    given = tokens.create("reports", [TokenScope.ASK], timedelta(days=1))
    server.play(_answer_after(lambda: tokens.revoke("reports")))
    with client_of(modelled, "group:finance") as client:
        client.headers["Authorization"] = f"Bearer {given}"
        answer = _asked(client)
    assert (answer[-1].name, answer[-1].data["status"]) == ("error", 401)
    assert "citation" not in [event.name for event in answer]


def test_extractive_passages_are_not_quoted_either(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = Rights()
    app = create_app(container, rights)
    with ready(app) as client:
        found = client.post("/api/search", json={"query": "salary band"}).json()
        assert PAY in str(found)
        chat = container.chat
        answer_with = type(chat).answer_by

        def answer_and_withdraw(*arguments: object) -> Iterator[object]:
            for event in answer_with(*arguments):  # type: ignore[arg-type]
                rights.readers = STRANGER
                yield event

        monkeypatch.setattr(type(chat), "answer_by", answer_and_withdraw)
        answer = _asked(client)
    assert answer[-1].data["status"] == 403
    assert not {"passages", "text", "citation", "done"}.intersection(one.name for one in answer)
