"""Who sends a request to a Quarry with accounts: a person by a session, a program by an API token or one of OAuth."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from fastapi import Request
from fastapi.responses import Response

from backend.access.api_tokens import PREFIX
from backend.access.machine_secret import MachineSecret
from backend.access.oauth.grants import ACCESS_PREFIX
from backend.access.oauth.resources import find_resource, name_resource
from backend.access.people import audit_name
from backend.access.roles import Role
from backend.access.sessions import Visitor, make_csrf_token
from backend.api.authentication import (
    Authenticator,
    FindGrant,
    FindToken,
    make_grant_asker,
    make_token_asker,
    read_address,
    read_bearer,
)
from backend.api.authorization import Asker
from backend.api.request_context import get_request_context
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from connectors.access import Readers

_THREADS = 4
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class AccountCookies:
    """The names of the cookies, and whether browsers send them over TLS alone."""

    session: str
    device: str
    secure: bool

    @classmethod
    def of_machine(cls, secret: MachineSecret) -> "AccountCookies":
        """Return names of their own: all ports of an address share its cookies, and with them other Quarrys."""
        return cls(secret.name_cookie("account"), secret.name_cookie("device"), secure=False)

    @classmethod
    def of_site(cls) -> "AccountCookies":
        """Return names by which browsers let no other host, port without TLS or path set the cookies."""
        return cls("__Host-quarry-session", "__Host-quarry-device", secure=True)

    def read_visitor(self, request: Request) -> Visitor:
        return Visitor(
            address=read_address(request),
            user_agent=request.headers.get("user-agent"),
            session=request.cookies.get(self.session),
            device=request.cookies.get(self.device),
        )

    def give(self, answer: Response, name: str, value: str, lifetime: timedelta) -> None:
        """Have the browser keep one of them."""
        answer.set_cookie(
            name,
            value,
            max_age=int(lifetime.total_seconds()),
            secure=self.secure,
            httponly=True,
            samesite="lax",
        )


@dataclass(frozen=True, slots=True)
class AccountAuthenticator:
    """Until there is an account, it leaves requests to the authenticator of the machine.

    The database is read in threads of its own, so that requests are recognized while searches keep theirs busy.
    """

    machine: Authenticator
    cookies: AccountCookies
    service_readers: Readers
    """What service tokens may read, which are of nobody."""
    accounts: "AccountPresence"
    find_token: FindToken
    find_grant: FindGrant
    find_session_person: Callable[[str], tuple[Person, Readers] | None]
    """Returns whose session it is, if it is valid, and what they hold by themselves; reads the database."""
    find_readers: Callable[[Person], Readers]
    """Returns what a person holds by themselves; reads the database."""
    executor: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, "authentication")
    )

    async def authenticate(self, request: Request) -> Asker | None:
        context = get_request_context(request.scope)
        context.has_accounts = self.accounts.is_known or await self._run(self.accounts.look)
        if not context.has_accounts:
            return await self.machine.authenticate(request)
        if "authorization" in request.headers:
            return await self._by_bearer(request)
        return await self._by_session(request)

    async def _by_bearer(self, request: Request) -> Asker | None:
        given, address = read_bearer(request), read_address(request)
        if given.startswith(PREFIX):
            return await self._run(lambda: self._find_token_asker(given, address))
        resource = _find_audience(request)
        if given.startswith(ACCESS_PREFIX) and resource is not None:
            return await self._run(lambda: self._find_grant_asker(given, resource, address))
        return None

    def _find_token_asker(self, given: str, address: str | None) -> Asker | None:
        found = self.find_token(given)
        if found is None:
            return None
        token, owner = found
        readers = self.service_readers if owner is None else self.find_readers(owner)
        return make_token_asker(token, owner, readers, address)

    def _find_grant_asker(self, given: str, resource: str, address: str | None) -> Asker | None:
        found = self.find_grant(given, resource)
        if found is None:
            return None
        grant, person = found
        return make_grant_asker(grant, person, self.find_readers(person), address)

    async def _by_session(self, request: Request) -> Asker | None:
        session = request.cookies.get(self.cookies.session)
        if session is None:
            return None
        return await self._run(lambda: self._find_session_asker(session, read_address(request)))

    def _find_session_asker(self, session: str, address: str | None) -> Asker | None:
        found = self.find_session_person(session)
        if found is None:
            return None
        person, readers = found
        return Asker(
            kind="session",
            readers=readers,
            role=Role(person.role),
            person=person,
            actor=Actor(audit_name(person.email), address),
            csrf_token=make_csrf_token(session),
        )

    async def _run(self, find: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self.executor, find)


def _find_audience(request: Request) -> str | None:
    """Return the resource that a token of OAuth has to be for; None where no such token is taken."""
    resource = find_resource(request.scope["path"])
    origin = get_request_context(request.scope).origin
    return None if resource is None else name_resource(origin, resource)


class AccountPresence:
    """Whether there are accounts. The database is asked until there are: they never go back to none."""

    def __init__(self, find: Callable[[], bool]) -> None:
        self._find = find
        self.is_known = False

    def look(self) -> bool:
        self.is_known = self.is_known or self._find()
        return self.is_known
