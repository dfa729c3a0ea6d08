"""Every route of a server without accounts, asked with and without the secret of the machine."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from backend.access.machine_secret import SESSION_LIFETIME, MachineSecret
from backend.api.authorization import Permission
from tests.support.access_actors import Actor
from tests.support.access_expected import Kind
from tests.support.access_objects import MISSING, PAIRS
from tests.support.access_requests import ask, read_status
from tests.support.access_routes import ROUTES
from tests.support.access_serving import make_world_of_one
from tests.support.access_world import World

pytestmark = pytest.mark.soak("slow")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with make_world_of_one(tmp_path_factory.mktemp("world")) as made:
        yield made


def name_missing(kind: Kind) -> str:
    if kind in PAIRS:
        outer, inner = PAIRS[kind].outer, PAIRS[kind].inner
        return f"{name_missing(outer).partition('/')[0]}/{name_missing(inner).rpartition('/')[2]}"
    return MISSING.get(kind, "absent")


def session_of(secret: MachineSecret, now: datetime | None = None) -> Mapping[str, str]:
    session = secret.make_session(now)
    proof = secret.csrf_token(session)
    return {"cookie": f"{secret.cookie_name}={session}", "x-csrf-token": proof}


def make_strangers(secret: MachineSecret) -> dict[str, Mapping[str, str]]:
    another = MachineSecret("0" * 64)
    cookie = session_of(another)["cookie"].replace(another.cookie_name, secret.cookie_name)
    return {
        "nobody": {},
        "another secret": {"authorization": f"Bearer {another.value}"},
        "empty secret": {"authorization": "Bearer "},
        "session of another secret": {"cookie": cookie},
        "ended session": session_of(secret, datetime.now(UTC) - 2 * SESSION_LIFETIME),
    }


def ask_every_route(world: World, headers: Mapping[str, str]) -> dict[str, int]:
    """Return the status of every route, asked for what is missing."""
    actor = Actor("machine", MappingProxyType({**headers}))
    return {
        route: read_status(ask(world, actor, route, name_missing(expected.kind)))
        for route, expected in ROUTES.items()
    }


def test_a_stranger_reaches_what_is_open_to_anyone_and_nothing_else(world: World) -> None:
    for name, headers in make_strangers(world.container.sign_in.machine_secret).items():
        for route, status in ask_every_route(world, headers).items():
            is_open = ROUTES[route].permission is Permission.ANYONE
            assert is_open or status == 401, (name, route)


def test_whoever_has_the_secret_reaches_all_but_accounts(world: World) -> None:
    secret = world.container.sign_in.machine_secret
    by_token = ask_every_route(world, {"authorization": f"Bearer {secret.value}"})
    assert ask_every_route(world, session_of(secret)) == by_token
    for route, status in by_token.items():
        permission = ROUTES[route].permission
        assert permission is Permission.ANYONE or status < 500, route
        assert permission is Permission.ANYONE or status != 401, route
        assert (status == 403) == (permission is Permission.ACCOUNT), route
