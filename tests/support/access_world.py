"""A Quarry as it is served, who asks it, and objects of every kind that are theirs, another's, or missing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.password_reset import PasswordResetService
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, end_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.app import Api
from backend.container import Container
from backend.store import api_tokens, identities, language_models, people, sessions, sources
from backend.store.conversations import ConversationOwner, list_page
from backend.store.database import Database
from backend.store.ledger import StoredLedger
from backend.store.messages import list_path
from backend.store.new_messages import NewQuestion, Writer, begin_conversation
from backend.store.people import Person
from indexing.ingestion.ledger import Failed
from tests.support.access_routes import ISSUER, MODEL_ADDRESS, Kind
from tests.support.accounts import add_person
from tests.support.conversations import ELSEWHERE, finish
from tests.support.language_models import make_values

ADDRESS = "http://127.0.0.1:8321"
ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "ann": Role.ADMIN,
        "bob": Role.MEMBER,
        "eve": Role.MEMBER,
        "sam": Role.SOURCE_MANAGER,
        "tom": Role.SOURCE_MANAGER,
        "gone": Role.ADMIN,
    }
)
SERVICE = "service"
_NEIGHBOURS = MappingProxyType({"bob": "eve", "eve": "bob"})
"""Whose objects are another's; of all others they are Tom's."""
_WEEK = timedelta(days=7)

Relation: TypeAlias = Literal["own", "another's", "missing"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: the headers by which they are known."""

    name: str
    headers: Mapping[str, str]

    @property
    def accepts(self) -> str:
        """Browsers have sessions, programs have tokens."""
        return "application/json" if "authorization" in self.headers else "text/html"

    @property
    def owner(self) -> str:
        """Whose objects are its own; those of Bob where it has none."""
        first = self.name.partition(" ")[0]
        return first if first in ROLES or first == SERVICE else "bob"

    @property
    def other(self) -> str:
        return _NEIGHBOURS.get(self.owner, "tom")


@dataclass(frozen=True)
class World:
    container: Container
    app: Api
    client: TestClient
    cookies: AccountCookies
    folder: Path
    """An empty one, which every source but the first reads."""
    kept: dict[tuple[Kind, str], str] = field(default_factory=dict)
    """Objects that nobody who asks for them may change."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def find_object(self, kind: Kind, relation: Relation, actor: Actor) -> str:
        """Return what names an object that stays."""
        if kind is Kind.MESSAGE_IN_OWN:
            conversation, _ = split_message(self.find_object(Kind.MESSAGE, "own", actor))
            _, message = split_message(self.find_object(Kind.MESSAGE, relation, actor))
            return f"{conversation}/{message}"
        if relation == "missing":
            return _MISSING.get(kind, "absent")
        if kind is Kind.FILTERED_SOURCE:
            return "wiki" if relation == "own" else "vault"
        return self._keep(kind, actor.owner if relation == "own" else actor.other)

    def _keep(self, kind: Kind, owner: str) -> str:
        if (kind, owner) not in self.kept:
            self.kept[kind, owner] = self.make(kind, owner)
        return self.kept[kind, owner]

    def make_object(self, kind: Kind, relation: Relation, actor: Actor) -> str:
        """Return what names a new object, which the actor may change."""
        if relation == "missing" or kind is Kind.FILTERED_SOURCE:
            return self.find_object(kind, relation, actor)
        return self.make(kind, actor.owner if relation == "own" else actor.other)

    def make(self, kind: Kind, owner: str) -> str:
        return _MAKERS[kind](self, owner)

    def find_person(self, owner: str) -> Person | None:
        return None if owner == SERVICE else people.get_by_email(self.database, email_of(owner))

    def get_person(self, owner: str) -> Person:
        return people.get_by_email(self.database, email_of(owner))

    @property
    def database(self) -> Database:
        return self.container.database

    def name_new(self) -> str:
        return f"new{next(self.numbers)}"

    def make_actor(self, name: str) -> Actor:
        return Actor(name, MappingProxyType(self._prove(name)))

    def _prove(self, name: str) -> dict[str, str]:
        secret = self.container.machine_secret
        match name.split():
            case ["nobody"]:
                return {}
            case ["ended", "session"]:
                return self._end_session()
            case ["disabled", "session"]:
                return self._disable(lambda: self._begin_session("gone"))
            case ["disabled", "token"]:
                return self._disable(lambda: self._make_token("gone", TokenScope.ADMIN))
            case ["machine", "secret"]:
                return _bearer(secret.value)
            case ["machine", "session"]:
                session = secret.make_session()
                return _session(secret.cookie_name, session, secret.csrf_token(session))
            case [owner]:
                return self._begin_session(owner)
            case [owner, scope]:
                return self._make_token(owner, TokenScope(scope))
            case _:
                raise ValueError(name)

    def _begin_session(self, owner: str) -> dict[str, str]:
        session = begin_session(self.database, self.get_person(owner), Visitor())
        return _session(self.cookies.session, session, make_csrf_token(session))

    def _end_session(self) -> dict[str, str]:
        session = begin_session(self.database, self.get_person("ann"), Visitor())
        end_session(self.database, session)
        return _session(self.cookies.session, session, make_csrf_token(session))

    def _disable(self, prove: Callable[[], dict[str, str]]) -> dict[str, str]:
        service, email = PeopleService(self.database), email_of("gone")
        if self.get_person("gone").disabled_at is not None:
            service.enable(email)
        proof = prove()
        service.disable(email)
        return proof

    def _make_token(self, owner: str, scope: TokenScope) -> dict[str, str]:
        service = ApiTokenService(self.database, owner=self.find_person(owner))
        return _bearer(service.create(self.name_new(), [scope], _WEEK))

    def record_state(self, actor: Actor) -> object:
        """Return what is of others than the actor, which nobody but they and admins may change."""
        others = [name for name in ("eve", "tom") if name != actor.owner]
        for name in (actor.owner, *others):
            for kind in _MAKERS:
                self._keep(kind, name)
        return [
            (
                person,
                [one.id for one in sessions.list_of_person(self.database, person.id)],
                [one.name for one in api_tokens.list_of_person(self.database, person.id)],
                [one.subject for one in identities.list_of_person(self.database, person.id)],
                list_conversations(self.database, ConversationOwner(person.id)),
            )
            for person in map(self.get_person, others)
        ], [
            one
            for one in sources.list_sources(self.database)
            if one.owner_id == self.get_person("tom").id
        ]


def split_message(named: str) -> tuple[str, str]:
    """Return the conversation, and the message in it."""
    conversation, _, message = named.partition("/")
    return conversation, message


def list_conversations(database: Database, owner: ConversationOwner) -> list[object]:
    """Return all of them with the ids of their messages."""
    return [
        (one, [message.id for message in list_path(database, one.leaf_id or 0, 100)])
        for state in ("active", "archived")
        for one in list_page(database, owner, state=state, words=(), before=None, limit=1_000)
    ]


def email_of(name: str) -> str:
    return f"{name}@example.com"


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _session(cookie: str, session: str, csrf_token: str) -> dict[str, str]:
    return {"cookie": f"{cookie}={session}", "x-csrf-token": csrf_token}


def _name_nothing(world: World, owner: str) -> str:
    """Return what is sent for a name that is nobody's, such as the email address of a sign-in."""
    del owner
    return world.name_new()


def _name_document(world: World, owner: str) -> str:
    del world
    return f"wiki:{owner}.md"


def _make_source(world: World, owner: str) -> str:
    name, person = world.name_new(), world.find_person(owner)
    is_of_admins = person is None or person.role == Role.ADMIN
    owner_id = None if person is None or is_of_admins else person.id
    settings = {"path": str(world.folder)}
    sources.add(world.database, name, "folder", settings, owner_id=owner_id)
    failed = Failed(source=name, document_id=f"{name}:x", item="x", reason="It is empty.")
    StoredLedger(world.database).save([failed])
    return name


def _make_person(world: World, owner: str) -> str:
    del owner
    return str(add_person(world.database, email_of(world.name_new())).id)


def _make_group(world: World, owner: str) -> str:
    del owner
    return str(GroupService(world.database).create(world.name_new()).id)


def _make_invitation(world: World, owner: str) -> str:
    del owner
    email = email_of(world.name_new())
    PeopleService(world.database).invite(email, Role.MEMBER)
    return email


def _make_invitation_code(world: World, owner: str) -> str:
    del owner
    return PeopleService(world.database).invite(email_of(world.name_new()), Role.MEMBER)


def _make_reset_code(world: World, owner: str) -> str:
    email = email_of("tom" if owner == SERVICE else owner)
    return PasswordResetService(world.database).begin(email)


def _make_service_token(world: World, owner: str) -> str:
    del owner
    return _make_own_token(world, SERVICE)


def _make_own_token(world: World, owner: str) -> str:
    service, name = (
        ApiTokenService(world.database, owner=world.find_person(owner)),
        world.name_new(),
    )
    service.create(name, [TokenScope.SEARCH], _WEEK)
    return name


def _make_session(world: World, owner: str) -> str:
    person = world.get_person("tom" if owner == SERVICE else owner)
    found = sessions.find_with_person(
        world.database, digest(begin_session(world.database, person, Visitor()))
    )
    assert found
    return str(found[0].id)


def _make_identity(world: World, owner: str) -> str:
    person, subject = world.get_person("tom" if owner == SERVICE else owner), world.name_new()
    identities.add(world.database, ISSUER, subject, person.id, datetime.now(UTC))
    return subject


def _make_conversation(world: World, owner: str) -> str:
    return split_message(_make_message(world, owner))[0]


def _make_message(world: World, owner: str) -> str:
    """Return the name of an answer that has been written."""
    person = world.get_person("tom" if owner == SERVICE else owner)
    writer = Writer(ELSEWHERE, datetime.now(UTC))
    asked = NewQuestion(text="How long is leave?", filters={})
    begun = begin_conversation(world.database, ConversationOwner(person.id), "Leave", asked, writer)
    finish(world.database, begun.answer.id)
    return f"{begun.answer.conversation_id}/{begun.answer.id}"


def _make_model(world: World, owner: str) -> str:
    """A try of it fails at once, and is sent nowhere: its key cannot be decrypted."""
    del owner
    name = world.name_new()
    values = make_values(name, MODEL_ADDRESS)
    language_models.add(world.database, values, "not a sealed key")
    return name


_MAKERS: Mapping[Kind, Callable[[World, str], str]] = MappingProxyType(
    {
        Kind.NOTHING: _name_nothing,
        Kind.DOCUMENT: _name_document,
        Kind.SOURCE: _make_source,
        Kind.PERSON: _make_person,
        Kind.GROUP: _make_group,
        Kind.INVITATION: _make_invitation,
        Kind.INVITATION_CODE: _make_invitation_code,
        Kind.RESET_CODE: _make_reset_code,
        Kind.TOKEN: _make_service_token,
        Kind.OWN_TOKEN: _make_own_token,
        Kind.SESSION: _make_session,
        Kind.IDENTITY: _make_identity,
        Kind.CONVERSATION: _make_conversation,
        Kind.MESSAGE: _make_message,
        Kind.MESSAGE_IN_OWN: _make_message,
        Kind.MODEL: _make_model,
    }
)
_MISSING: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.DOCUMENT: "wiki:none.md",
        Kind.PERSON: "999999",
        Kind.GROUP: "999999",
        Kind.SESSION: "999999",
        Kind.INVITATION: "absent@example.com",
        Kind.MESSAGE: "absent/999999",
    }
)
