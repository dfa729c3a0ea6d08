"""A Quarry as it is served, who asks it, and objects of every kind that are theirs, another's, or missing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.people import PeopleService
from backend.access.sessions import Visitor, begin_session, end_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.app import Api
from backend.container import Container
from backend.store.accounts import api_tokens, identities, people, sessions
from backend.store.accounts.people import Person
from backend.store.chat import answer_feedback, assistants, conversation_shares, memories, projects
from backend.store.chat.conversations import list_page
from backend.store.chat.messages import list_path
from backend.store.chat.projects import list_members
from backend.store.database import Database
from backend.store.documents import document_sets
from backend.store.owner import ConversationOwner
from backend.store.research import knowledge
from backend.store.sync import sources
from backend.store.sync.sources import SourcesOf
from tests.support.access_actors import SERVICE, Actor, Relation, email_of
from tests.support.access_expected import Kind
from tests.support.access_objects import MAKERS, MISSING, PAIRS, Pair

ADDRESS = "http://127.0.0.1:8321"
FILTERS: Mapping[Kind, Mapping[Relation, str]] = MappingProxyType(
    {
        Kind.FILTERED_SOURCE: {"own": "wiki", "another's": "vault"},
        Kind.FILTERED_SET: {"own": "policies", "another's": "reserves"},
    }
)
"""What exists from the beginning, to search in."""
_WEEK = timedelta(days=7)

_Name: TypeAlias = Callable[[Kind, Relation, Actor], str]


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
        if kind in PAIRS:
            return self._pair(PAIRS[kind], relation, actor, self.find_object)
        if relation == "missing":
            return MISSING.get(kind, "absent")
        if kind in FILTERS:
            return FILTERS[kind][relation]
        return self._keep(kind, actor.owner if relation == "own" else actor.other)

    def _keep(self, kind: Kind, owner: str) -> str:
        if (kind, owner) not in self.kept:
            self.kept[kind, owner] = self.make(kind, owner)
        return self.kept[kind, owner]

    def make_object(self, kind: Kind, relation: Relation, actor: Actor) -> str:
        """Return what names a new object, which the actor may change."""
        if kind in PAIRS:
            return self._pair(PAIRS[kind], relation, actor, self.make_object)
        if relation == "missing" or kind in FILTERS:
            return self.find_object(kind, relation, actor)
        return self.make(kind, actor.owner if relation == "own" else actor.other)

    def _pair(self, pair: Pair, relation: Relation, actor: Actor, name: _Name) -> str:
        outer = name(pair.outer, relation if pair.varying == "outer" else "own", actor)
        if pair.outer is pair.inner and relation == "own":
            return outer
        inner = name(pair.inner, relation if pair.varying == "inner" else "own", actor)
        return f"{outer.partition('/')[0]}/{inner.rpartition('/')[2]}"

    def make(self, kind: Kind, owner: str) -> str:
        return MAKERS[kind](self, owner)

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
        secret = self.container.sign_in.machine_secret
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
        of_tom = SourcesOf(self.get_person("tom").id)
        for name in (actor.owner, *others):
            for kind in MAKERS:
                self._keep(kind, name)
        return [self._record_of_person(person) for person in map(self.get_person, others)], [
            *(one for one in sources.list_sources(self.database, of_tom)),
            *(one.values for one in document_sets.list_sets(self.database, of_tom)),
        ]

    def _record_of_person(self, person: Person) -> list[object]:
        database, owner = self.database, ConversationOwner(person.id)
        return [
            person,
            [one.id for one in sessions.list_of_person(database, person.id)],
            [one.name for one in api_tokens.list_of_person(database, person.id)],
            [one.subject for one in identities.list_of_person(database, person.id)],
            list_conversations(database, owner),
            memories.list_page(database, owner, None, 1_000),
            knowledge.list_page(database, owner, None, None, 1_000),
            [one for one in assistants.list_known_to(database, owner) if one.owner == owner],
            [(one, list_members(database, one.id)) for one in projects.list_of(database, owner)],
        ]


def list_conversations(database: Database, owner: ConversationOwner) -> list[object]:
    """Return all of them with the ids of their messages, how they are shared, and what was said of them."""
    return [
        (
            one,
            [message.id for message in list_path(database, one.leaf_id or 0, 100)],
            conversation_shares.find(database, owner, one.id),
            answer_feedback.list_of_conversation(database, owner, one.id),
        )
        for state in ("active", "archived")
        for one in list_page(database, owner, state=state, words=(), before=None, limit=1_000)
    ]


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _session(cookie: str, session: str, csrf_token: str) -> dict[str, str]:
    return {"cookie": f"{cookie}={session}", "x-csrf-token": csrf_token}
