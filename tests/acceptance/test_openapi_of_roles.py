"""Requests that are made up, sent by everybody: by each role, each scope of a token, and nobody."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from schemathesis import GenerationMode

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.machine_secret import MachineSecret
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.container import Container
from backend.sample import handbook
from backend.settings import Settings
from backend.store.database import Database
from tests.support.accounts import add_person
from tests.support.home import Home
from tests.support.made_up_requests import check_answers, list_operations
from tests.support.models import MODEL_CACHE
from tests.support.serving import serving

pytestmark = pytest.mark.soak("access")

EXAMPLES = 3
"""Of each operation for each who asks, valid ones and others."""
NOBODY = "nobody"
ROLES = {"member": Role.MEMBER, "manager": Role.SOURCE_MANAGER, "admin": Role.ADMIN}
TOKENS = [f"{owner} {scope}" for owner in ("admin", "member", "service") for scope in TokenScope]
A_WEEK = timedelta(days=7)

Proofs = Mapping[str, Mapping[str, str]]
"""The headers by which each who asks is known."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made-up")
    shutil.copytree(handbook() / "support", path / "handbook" / "support")
    shutil.copy(handbook() / "access.yaml", path / "handbook")
    return path


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    """The address of a server of its own: what is made up may change and remove the source."""
    home = Home(place)
    assert home.quarry("add", "folder", str(place / "handbook")).code == 0
    assert home.quarry("sync").code == 0
    with serving(home) as running:
        yield running.url


@pytest.fixture(scope="module")
def proofs(place: Path, url: str) -> Proofs:
    del url
    values = {"home": place / "state", "models": MODEL_CACHE}
    container = Container(Settings.model_validate(values))
    with closing(container.database):
        return dict(_make_proofs(container.database, container.sign_in.machine_secret))


def _make_proofs(
    database: Database, secret: MachineSecret
) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield NOBODY, {}
    cookie = AccountCookies.of_machine(secret).session
    # The first account is an admin's.
    people = {
        name: add_person(database, f"{name}@example.com", ROLES[name]) for name in reversed(ROLES)
    }
    for name, person in people.items():
        session = begin_session(database, person, Visitor())
        proof = {"cookie": f"{cookie}={session}", "x-csrf-token": make_csrf_token(session)}
        yield name, proof
    for token in TOKENS:
        owner, scope = token.split()
        service = ApiTokenService(database, owner=people.get(owner))
        made = service.create(f"{owner}-{scope}", [TokenScope(scope)], A_WEEK)
        yield token, {"authorization": f"Bearer {made}"}


@pytest.fixture(scope="module")
def description(url: str, proofs: Proofs) -> Any:
    answer = httpx.get(f"{url}/openapi.json", headers=proofs["admin"], timeout=60)
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: f"{mode.value} data")
@pytest.mark.parametrize("name", [NOBODY, *ROLES, *TOKENS])
def test_whoever_asks_is_answered_as_described(
    url: str, proofs: Proofs, description: Any, name: str, mode: GenerationMode
) -> None:
    nowhere = httpx.get(f"{url}/no/such/address", headers=proofs[name], timeout=60)
    assert nowhere.status_code == (401 if name == NOBODY else 404), "the proof counts"
    for operation in list_operations(description):
        if mode.is_positive or operation.body or operation.query:
            cases = operation.as_strategy(generation_mode=mode)
            check_answers(cases, url, proofs[name], EXAMPLES)
