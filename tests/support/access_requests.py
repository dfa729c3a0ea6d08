"""Requests to every route, as a browser or a program would send them."""

import json
import re
from typing import Any
from urllib.parse import quote

from httpx2 import Response

from tests.support.access_actors import Actor
from tests.support.access_expected import OBJECT, Expected, Kind
from tests.support.access_objects import IN_ANOTHER, split_pair
from tests.support.access_routes import ROUTES
from tests.support.access_world import World

_TO_SIGN_IN = re.compile("/sign-in[?]next=.*")


def ask(world: World, actor: Actor, route: str, named: str) -> Response:
    """Ask a route for an object, as a browser or a program would."""
    method, _, path = route.partition("#")[0].partition(" ")
    path = path.replace("{number}", "1").replace("/static/{version}/{name}", "/static/x/quarry.svg")
    in_path, in_body = _split(ROUTES[route].kind, named)
    in_order = iter((in_path, in_body))
    address = re.sub(r"\{\w+(:path)?\}", lambda _: quote(next(in_order), safe=""), path)
    sent = json.loads(json.dumps(_list_sent(ROUTES[route])).replace(OBJECT, in_body))
    given = {"accept": actor.accepts, **actor.headers}
    answer = world.client.request(method, address, headers=given, **sent)
    # What one is given to keep is not what another sends.
    world.client.cookies.clear()
    return answer


def _split(kind: Kind, named: str) -> tuple[str, str]:
    """Return what the path says, and the query and the body, and a path after it."""
    return split_pair(named) if kind in IN_ANOTHER else (named, named)


def _list_sent(expected: Expected) -> dict[str, Any]:
    sent: dict[str, Any] = {"params": expected.query, "json": expected.json, "data": expected.form}
    return {name: dict(value) for name, value in sent.items() if value is not None}


def read_status(answer: Response) -> int:
    """Return the status; a browser of nobody is led to the sign-in page instead."""
    if answer.status_code == 303 and _TO_SIGN_IN.fullmatch(answer.headers["location"]):
        return 401
    return answer.status_code
