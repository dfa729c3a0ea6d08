"""How long the answer takes that something does not exist, where it does not, and where it is not the asker's.

    .venv/bin/python -m tests.benchmarks.hidden_objects [--requests N]

A member of a `quarry serve` on the sample handbook asks for documents, sessions and tokens of others and for such that are
missing, by turns, and with codes of invitations and password resets that are used, expired or never were; a source manager for sources of others, which have runs and failures, and for their runs. Bars: in a thousand requests of each the medians differ by at most 5 % or 0.2 ms, and the answers but for the
names that were asked for not at all. The command exits with 1 if one is missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.password_reset import PasswordResetService
from backend.access.people import AccountDetails, PeopleService
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.authentication import CSRF_HEADER
from backend.container import Container
from backend.sample import handbook
from backend.settings import Settings
from backend.store.accounts import sessions
from backend.store.accounts.people import Person
from backend.store.database import Database
from tests.support.accounts import CHEAP, PASSWORD, add_person
from tests.support.home import Home
from tests.support.models import MODEL_CACHE
from tests.support.serving import serving

REQUESTS = 2_000
MOST_PERCENT, MOST_MILLISECONDS = 5, 0.2
FORBIDDEN = "handbook:people/project-alabaster-memo.md"
MISSING = "handbook:people/project-albatross-memo.md"
SOURCE, MISSING_SOURCE = "handbook", "handbuch"
REQUEST_ID = {"X-Request-Id": "one"}


@dataclass(frozen=True)
class Question:
    method: str
    path: str
    hidden: str
    """What exists and is not the asker's; as the last part of the path or the value of the field."""
    missing: str
    field: str = ""
    query: str = ""
    """What a query names it by."""
    ending: str = ""
    role: Role = Role.MEMBER
    """Of the asker."""

    def ask(self, client: httpx.Client, name: str) -> httpx.Response:
        if self.query:
            return client.get(self.path, params={self.query: name}, headers={"Accept": "text/html"})
        if self.field:
            return client.request(self.method, self.path, data={self.field: name})
        accept = "application/json" if self.path.startswith("/api/") else "text/html"
        return client.request(
            self.method, f"{self.path}/{name}{self.ending}", headers={"Accept": accept}
        )


@dataclass(frozen=True)
class Hidden:
    session: str
    """The number of another's."""
    invitations: Mapping[str, str]
    """Codes that cannot be used, by the reason."""
    resets: Mapping[str, str]


def list_questions(hidden: Hidden) -> Iterator[Question]:
    for path, codes in (("/invitation", hidden.invitations), ("/password-reset", hidden.resets)):
        for reason, code in codes.items():
            yield Question("GET", path, code, "9" * len(code), query="code", ending=f" {reason}")
            yield Question("POST", path, code, "9" * len(code), "code", ending=f" {reason}")
    session = hidden.session
    for path, ending in (
        ("/api/documents", ""),
        ("/api/documents", "/original"),
        ("/api/documents", "/pages/1"),
        ("/document", ""),
    ):
        yield Question("GET", path, FORBIDDEN, MISSING, ending=ending)
    yield Question("POST", "/account/session", session, "9" * len(session), "session")
    yield Question("POST", "/account/token", "token-of-ann", "token-of-bob", "name")
    for path, ending in (
        ("/api/admin/sources", ""),
        ("/api/admin/sources", "/runs"),
        ("/api/admin/sources", "/failures"),
        ("/api/admin/sources", "/decision"),
        ("/source", ""),
        ("/source", "/state"),
    ):
        yield Question("GET", path, SOURCE, MISSING_SOURCE, ending=ending, role=Role.SOURCE_MANAGER)


@contextmanager
def serve_people(folder: Path) -> Iterator[tuple[dict[Role, httpx.Client], Hidden]]:
    """Serve the handbook; yield clients with the sessions of a member and of a source manager, and what is hidden from them."""
    home = Home(folder)
    assert home.quarry("add", "folder", str(handbook())).code == 0
    assert home.quarry("sync").code == 0
    settings = Settings(home=folder / "state", models=Path(MODEL_CACHE))
    with serving(home) as server, closing(Container(settings).database) as database:
        set_up = PeopleService(database).set_up()
        ann = add_person(database, "ann@example.com", Role.ADMIN)
        bob = add_person(database, "bob@example.com")
        sam = add_person(database, "sam@example.com", Role.SOURCE_MANAGER)
        begin_session(database, ann, Visitor())
        (foreign,) = sessions.list_of_person(database, ann.id)
        ApiTokenService(database, owner=ann).create(
            "token-of-ann", [TokenScope.SEARCH], timedelta(days=1)
        )
        cookie = AccountCookies.of_machine(Container(settings).sign_in.machine_secret).session
        begun = [begin_session(database, person, Visitor()) for person in (bob, sam)]
        with (
            open_client(server.url, cookie, begun[0]) as member,
            open_client(server.url, cookie, begun[1]) as manager,
        ):
            invitations = {"superseded": set_up, **make_invitations(database)}
            hidden = Hidden(str(foreign.id), invitations, make_resets(database, bob))
            yield {Role.MEMBER: member, Role.SOURCE_MANAGER: manager}, hidden


def make_invitations(database: Database) -> dict[str, str]:
    service, now = PeopleService(database), datetime.now(UTC)
    used = service.invite("cy@example.com", Role.MEMBER)
    service.accept_invitation(used, AccountDetails(name="Cy", password=PASSWORD), CHEAP)
    expired = service.invite("di@example.com", Role.MEMBER, now - timedelta(days=8))
    return {"used": used, "expired": expired}


def make_resets(database: Database, person: Person) -> dict[str, str]:
    service = PasswordResetService(database)
    used = service.begin("cy@example.com")
    service.finish(used, PASSWORD, CHEAP)
    expired = service.begin(person.email, datetime.now(UTC) - timedelta(days=2))
    return {"used": used, "expired": expired}


def open_client(url: str, cookie: str, session: str) -> httpx.Client:
    headers = {CSRF_HEADER: make_csrf_token(session), **REQUEST_ID}
    return httpx.Client(base_url=url, timeout=60, cookies={cookie: session}, headers=headers)


def measure(client: httpx.Client, question: Question, requests: int) -> tuple[float, float]:
    """Return the medians in milliseconds for what is hidden and what is missing."""
    names = (question.hidden, question.missing)
    hidden, missing = (question.ask(client, name) for name in names)
    check_equal(hidden, missing, question)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(requests):
        # Not always in the same order: what was read last is found faster.
        which = (number + number // 2) % 2
        began = time.perf_counter()
        question.ask(client, names[which])
        times[which].append(1000 * (time.perf_counter() - began))
    return median(times[0]), median(times[1])


def check_equal(hidden: httpx.Response, missing: httpx.Response, question: Question) -> None:
    assert hidden.status_code == missing.status_code == 404, (question, hidden, missing)
    assert hidden.text.replace(question.hidden, question.missing) == missing.text, question
    different = set(hidden.headers.raw) ^ set(missing.headers.raw)
    assert {name.lower() for name, _ in different} <= {b"date"}, different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--path", default="", help="only questions of this path")
    options = parser.parse_args()
    met = True
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_people(Path(folder)) as (clients, objects),
    ):
        for question in list_questions(objects):
            if not f"{question.path}{question.ending}".startswith(options.path):
                continue
            hidden, missing = measure(clients[question.role], question, options.requests)
            apart = abs(hidden - missing)
            met = met and apart <= max(MOST_MILLISECONDS, missing * MOST_PERCENT / 100)
            asked = f"{question.method} {question.path}{question.ending}"
            print(
                f"{asked:32} another's {hidden:6.3f} ms  missing {missing:6.3f} ms  apart {apart:.3f} ms"
            )
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
