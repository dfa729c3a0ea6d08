"""Programs put documents in over HTTP: a server that indexes what waits, and one that is killed before it could."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.roles import Role
from backend.container import Container
from backend.settings import Settings
from backend.store.accounts import people
from tests.support.accounts import add_person
from tests.support.home import CHECKOUT, Home
from tests.support.models import MODEL_CACHE
from tests.support.server_processes import SOON, wait_for
from tests.support.serving import Serving, serving
from tests.support.soak import scaled

DOCUMENTS, PROGRESS, SOURCE = "/api/documents", "/api/ingestion", "tickets"
SAM, BOB, EVE = (f"{name}@example.com" for name in ("sam", "bob", "eve"))
PAGE = (CHECKOUT / "docs" / "ingestion.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROUNDS = scaled(1, 8, "faults")
"""Servers that are killed, each with a thousand documents more."""
AT_ONCE = 100


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with people, and a source that programs put documents into."""
    home = Home(tmp_path_factory.mktemp("ingestion"))
    with closing(_open(home)) as container:
        add_person(container.database, "ann@example.com", Role.ADMIN)
        add_person(container.database, SAM, Role.SOURCE_MANAGER)
        add_person(container.database, BOB)
        add_person(container.database, EVE)
    assert home.quarry("add", "ingest", "--name", SOURCE, "--description", "Tickets").code == 0
    assert home.quarry("sources", "owner", SOURCE, SAM).code == 0
    return home


def _open(home: Home) -> Container:
    return Container(Settings.model_validate({"home": home.path / "state", "models": MODEL_CACHE}))


@pytest.fixture(scope="module")
def tokens(place: Home) -> dict[str, str]:
    scopes = {SAM: TokenScope.INGEST, BOB: TokenScope.SEARCH, EVE: TokenScope.SEARCH}
    with closing(_open(place)) as container:
        return {
            email: ApiTokenService(
                container.database, owner=people.get_by_email(container.database, email)
            ).create("program", [scope], timedelta(days=1))
            for email, scope in scopes.items()
        }


@pytest.fixture
def server(place: Home) -> Iterator[Serving]:
    with serving(place, QUARRY_WORKERS="true") as running:
        yield running


def _send(server: Serving, token: str, method: str, path: str, **sent: Any) -> Any:
    headers = {"authorization": f"Bearer {token}"}
    return httpx.request(method, f"{server.url}{path}", headers=headers, timeout=60, **sent)


def _put_in(server: Serving, token: str, *documents: object) -> None:
    body = {"source": SOURCE, "documents": documents}
    sent = _send(server, token, "POST", DOCUMENTS, json=body)
    assert sent.status_code == 202, sent.text
    assert sent.json()["refused"] == 0


def _is_settled(server: Serving, token: str) -> bool:
    return not any(
        _send(server, token, "GET", f"{PROGRESS}?source={SOURCE}&state={state}").json()["documents"]
        for state in ("waiting", "deleting")
    )


def _finds(server: Serving, token: str, query: str) -> list[str]:
    found = _send(server, token, "POST", "/api/search", json={"query": query, "limit": 50})
    assert found.status_code == 200, found.text
    return [one["document_id"] for one in found.json()["results"]]


def _ticket(name: str, text: str, *readers: str) -> dict[str, object]:
    return {"id": name, "title": f"Ticket {name}", "text": text, "readers": readers}


def test_documents_are_found_by_their_readers_until_these_change_or_they_are_deleted(
    server: Serving, tokens: dict[str, str]
) -> None:
    text, query = "The Quibberdale pump leaks at its flange.", "Quibberdale pump"
    settled = partial(_is_settled, server, tokens[SAM])
    _put_in(server, tokens[SAM], _ticket("a", text, f"user:{BOB}"))
    wait_for(settled)
    assert "tickets:a" in _finds(server, tokens[BOB], query)
    assert "tickets:a" not in _finds(server, tokens[EVE], query)
    _put_in(server, tokens[SAM], _ticket("a", text, f"user:{EVE}"))
    wait_for(settled)
    assert "tickets:a" not in _finds(server, tokens[BOB], query)
    assert "tickets:a" in _finds(server, tokens[EVE], query)
    deleted = _send(server, tokens[SAM], "DELETE", f"{DOCUMENTS}/tickets:a")
    assert deleted.status_code == 204
    wait_for(settled)
    assert "tickets:a" not in _finds(server, tokens[EVE], query)


def test_the_examples_of_the_page_do_what_it_says(
    server: Serving, tokens: dict[str, str], tmp_path: Path
) -> None:
    # The last one generates a client, which tests/acceptance/test_documented_examples.py does.
    put_in, file, progress, delete = (_run(one, server, tokens, tmp_path) for one in EXAMPLES[:-1])
    (answer,) = put_in
    assert [one["outcome"] for one in answer["results"]] == ["accepted"] * 2
    assert file[0]["results"][0]["document_id"] == "tickets:manual-c40"
    assert progress[0]["id"] == "4711"
    assert progress[1]["next"] is None
    assert delete == [{"source": SOURCE, "deleted": ["4712"], "missing": ["4713"]}]
    wait_for(partial(_is_settled, server, tokens[SAM]))
    state = _send(server, tokens[SAM], "GET", f"{PROGRESS}/tickets:4711").json()
    assert state["state"] == "indexed"


def _run(script: str, server: Serving, tokens: dict[str, str], folder: Path) -> list[Any]:
    """Run an example, and return the JSON values that it writes."""
    done = subprocess.run(
        ["bash", "-euc", script],
        env={"PATH": "/usr/bin:/bin", "QUARRY": server.url, "TOKEN": tokens[SAM]},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    values, rest = [], done.stdout.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    return values


@pytest.mark.deep("faults")
def test_a_killed_server_loses_none_of_a_thousand_documents(
    place: Home, tokens: dict[str, str]
) -> None:
    """It is killed between the answer and the index: while documents wait, and while some are being indexed."""
    put_in: list[str] = []
    for number in range(ROUNDS):
        with serving(place, QUARRY_WORKERS="true") as server:
            for start in range(0, 1_000, AT_ONCE):
                names = [f"{number}-{start + one}" for one in range(AT_ONCE)]
                tickets = [_ticket(one, f"Nantmoor note {one}.", f"user:{BOB}") for one in names]
                _put_in(server, tokens[SAM], *tickets)
                put_in += names
            assert not _is_settled(server, tokens[SAM])
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(SOON)
    with serving(place, QUARRY_WORKERS="true") as server:
        _wait_until_settled(server, tokens[SAM])
        states = _list_states(server, tokens[SAM])
        assert {name: states[name] for name in put_in} == dict.fromkeys(put_in, "indexed")
        for name in put_in[:: len(put_in) // 20]:
            found = _finds(server, tokens[BOB], f'"Nantmoor note {name}"')
            assert found.count(f"tickets:{name}") == 1
            assert f"tickets:{name}" not in _finds(server, tokens[EVE], f'"Nantmoor note {name}"')


def _wait_until_settled(server: Serving, token: str) -> None:
    """A busy machine takes long: wait as long as there are fewer and fewer."""
    while left := _count_waiting(server, token):
        wait_for(partial(_has_fewer, server, token, left))


def _has_fewer(server: Serving, token: str, left: int) -> bool:
    return _count_waiting(server, token) < left


def _count_waiting(server: Serving, token: str) -> int:
    return sum(state == "waiting" for state in _list_states(server, token).values())


def _list_states(server: Serving, token: str) -> dict[str, str]:
    found: dict[str, str] = {}
    query: dict[str, Any] = {"source": SOURCE, "limit": 1_000}
    while True:
        page = _send(server, token, "GET", PROGRESS, params=query).json()
        found |= {one["id"]: one["state"] for one in page["documents"]}
        if page["next"] is None:
            return found
        query["after"] = page["next"]
