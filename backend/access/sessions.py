"""Sessions of people: what a browser holds after somebody has signed in, and until when it is good for."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.access.own_readers import find_own_readers
from backend.access.random_secrets import digest, make_random_secret
from backend.store.accounts import sessions
from backend.store.accounts.people import Person
from backend.store.accounts.sessions import Session
from backend.store.database import Database
from connectors.access import Readers

LONGEST = timedelta(days=30)
"""After which a person signs in again, however active they are."""
LONGEST_UNUSED = timedelta(days=14)
USE_PRECISION = timedelta(minutes=1)
"""A use is recorded if the last recorded one is at least so long ago."""
_LONGEST_USER_AGENT = 300


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor who is not known yet: from where a request comes, and what its browser holds."""

    address: str | None = None
    user_agent: str | None = None
    session: str | None = None
    device: str | None = None


def begin_session(
    database: Database, person: Person, visitor: Visitor, now: datetime | None = None
) -> str:
    """Return the value of a new session's cookie; the session that the browser had before has ended."""
    now = now or datetime.now(UTC)
    value = make_random_secret()
    sessions.remove_ended(database, now, unused_since=now - LONGEST_UNUSED)
    if visitor.session is not None:
        sessions.remove(database, digest(visitor.session))
    sessions.add(
        database,
        digest=digest(value),
        person_id=person.id,
        created_at=now,
        expires_at=now + LONGEST,
        address=visitor.address,
        user_agent=visitor.user_agent and visitor.user_agent[:_LONGEST_USER_AGENT],
    )
    return value


def find_session_person(
    database: Database, session: str, now: datetime | None = None
) -> tuple[Person, Readers] | None:
    """Return whose session it is and what they hold by themselves, both as of one moment, and record its use.

    None where the session is not valid, or the account is disabled.
    """
    now = now or datetime.now(UTC)
    with database.snapshot() as opened:
        found = sessions.find_with_person(opened, digest(session))
        if found is None or not _is_valid(found[0], now):
            return None
        known, person = found
        readers = find_own_readers(opened, person, now)
    if now - known.last_used_at >= USE_PRECISION:
        sessions.record_use(database, known.id, now)
    return person, readers


def _is_valid(known: Session, now: datetime) -> bool:
    return known.expires_at > now and known.last_used_at > now - LONGEST_UNUSED


def end_session(database: Database, session: str) -> None:
    sessions.remove(database, digest(session))


def make_csrf_token(session: str) -> str:
    """Return what changing requests of a session carry, which a page of another origin cannot know."""
    return hmac.new(session.encode(errors="replace"), b"csrf", hashlib.sha256).hexdigest()
